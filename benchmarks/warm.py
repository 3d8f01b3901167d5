"""One more audit in a process that runs: 7,214 rows, 83 subgroups.

What a service or a notebook waits for. Imports and the first call come before the clock; every
call makes a new `Audit` of the frame, so that the scan is part of it, or asks an `Audit` that was
asked before. The peer computes the same rates, without tests or intervals.
"""

from dataclasses import replace
from functools import partial

from disparity import COLUMNS, compas_sized
from harness import Measurement, Row, compare, measure, show

CALLS = 15


def _ours(frame, **options):
    import equipoise as eq

    audit = eq.Audit(frame, group=list(COLUMNS), y_pred="selected")
    result = audit.disparity("selection_rate", **options)
    return len(result.findings)


def _again(audit, **options):
    return len(audit.disparity("selection_rate", **options).findings)


def asked():
    import equipoise as eq

    audit = eq.Audit(compas_sized(), group=list(COLUMNS), y_pred="selected")
    audit.disparity("selection_rate", simultaneous=True)
    return audit


def _peer(frame):
    from itertools import combinations

    from fairlearn.metrics import MetricFrame, selection_rate

    y, found = frame["selected"], 0
    for size in (1, 2, 3):
        for chosen in combinations(COLUMNS, size):
            rates = MetricFrame(
                metrics=selection_rate,
                y_true=y,
                y_pred=y,
                sensitive_features=frame[list(chosen)],
            )
            found += len(rates.by_group)
    return found


def warmed(call):
    frame = compas_sized()
    call(frame)
    return frame


def repeated(frame, call):
    found = [call(frame) for _ in range(CALLS)]
    return found[-1]


def _each(found: Measurement) -> Measurement:
    return replace(found, seconds=found.seconds / CALLS, cpu=found.cpu / CALLS)


def _measured(call) -> Measurement:
    return _each(measure(partial(repeated, call=call), partial(warmed, call)))


def _asked_again(**options) -> Measurement:
    return _each(measure(partial(repeated, call=partial(_again, **options)), asked))


def same(ours, theirs):
    assert ours == theirs == 83


def rows() -> list[Row]:
    peer = _measured(_peer)
    return [
        compare(
            "the same audit asked again, 7,214 rows, 83 subgroups",
            _asked_again(),
            peer,
            peer="fairlearn MetricFrame, rates alone",
            target="20 ms",
            same=same,
        ),
        compare(
            "the same with simultaneous intervals",
            _asked_again(simultaneous=True),
            peer,
            peer="fairlearn MetricFrame, rates alone",
            target="60 ms",
            same=same,
        ),
        compare(
            "a new audit, 7,214 rows, 83 subgroups",
            _measured(partial(_ours)),
            peer,
            peer="fairlearn MetricFrame, rates alone",
            target="20 ms",
            same=same,
        ),
        compare(
            "a new audit with simultaneous intervals",
            _measured(partial(_ours, simultaneous=True)),
            peer,
            peer="fairlearn MetricFrame, rates alone",
            target="60 ms",
            same=same,
        ),
    ]


if __name__ == "__main__":
    show(rows())

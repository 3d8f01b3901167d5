"""Benefits that encode how many benign errors a harmful one is worth, and the cap they imply."""

from dataclasses import dataclass
from typing import Any

from equipoise._typing import CapCorner, DecisionKind
from equipoise.stats.inequality.cap import KappaScheme, index_cap, kappa_scheme

__all__ = ["BenefitDesign", "benefit_design"]

HARM = {"punitive": "false positive", "assistive": "false negative"}
BENIGN = {"punitive": "false negative", "assistive": "false positive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenefitDesign:
    """A benefit matrix for a ratio of errors, with the cap that guarantees the ratio.

    Parameters
    ----------
    scheme : KappaScheme
        Kind, base rate, kappa and the two benefits below one.
    order : float
        Order of the index.
    cap : float
        Any model whose index is below it satisfies kappa u < v.
    binding : {"perfect model", "harm everybody", "edge"}
        The forbidden model with the smallest index, which sets the cap.
    largest_harm : float
        Largest harmful error rate that can pass the cap.
    """

    scheme: KappaScheme
    order: float
    cap: float
    binding: CapCorner
    largest_harm: float

    @property
    def matrix(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Benefits ``matrix[y_pred][y_true]``."""
        return self.scheme.matrix

    @property
    def direct_limit(self) -> float:
        """Largest harmful error rate that kappa itself allows, with every benign error made."""
        return min(1.0, 1.0 / self.scheme.kappa)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a regulator should know before using the cap."""
        share = self.largest_harm / self.direct_limit
        found = [
            (
                f"The cap admits {HARM[self.scheme.kind]} rates up to {self.largest_harm:.2%};"
                f" {self.scheme.kappa:g} x harmful < benign allows up to {self.direct_limit:.0%}."
                f" The cap is {1.0 / share:.3g} times as strict as what it stands for: enforce the"
                " constraint on the error rates directly, and report the index."
            )
        ]
        if self.binding == "perfect model":
            found.append(
                "The cap is the index of the perfect model, so that every model below it is more"
                " lenient than the truth."
            )
        elif self.binding == "harm everybody":
            found.append(
                "The cap is set by the model that harms everybody: treating all people equally"
                " badly has a small index."
            )
        found.append(
            f"The guarantee holds for decisions, not for scores, and at a base rate of"
            f" {self.scheme.base_rate:g}."
        )
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a JSON-safe dictionary."""
        return {
            "kind": self.scheme.kind,
            "base_rate": self.scheme.base_rate,
            "kappa": self.scheme.kappa,
            "minimum_benefit": self.scheme.low,
            "order": self.order,
            "matrix": [list(row) for row in self.matrix],
            "mean_at_limit": self.scheme.mean_at_limit,
            "cap": self.cap,
            "binding": self.binding,
            "largest_harm": self.largest_harm,
            "direct_limit": self.direct_limit,
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        (tn, fn), (fp, tp) = self.matrix
        kind = self.scheme.kind
        lines = [
            (
                f"{kind} decision, base rate {self.scheme.base_rate:g}: one {HARM[kind]} is worth"
                f" {self.scheme.kappa:g} {BENIGN[kind]}s"
            ),
            "benefit        outcome 0   outcome 1",
            f"  decision 0   {tn:9.4f}   {fn:9.4f}",
            f"  decision 1   {fp:9.4f}   {tp:9.4f}",
            f"cap on the index of order {self.order:g}: {self.cap:.4g} ({self.binding})",
            (
                f"largest {HARM[kind]} rate below the cap: {self.largest_harm:.4f}"
                f" (directly: {self.direct_limit:.4f})"
            ),
        ]
        return "\n".join(lines + [f"note: {warning}" for warning in self.warnings])


def benefit_design(
    base_rate: float,
    kappa: float,
    kind: DecisionKind = "punitive",
    minimum_benefit: float = 0.1,
    order: float = 1.0,
) -> BenefitDesign:
    r"""Choose benefits and a cap so that harmful errors stay rarer than benign ones by a factor.

    Parameters
    ----------
    base_rate : float
        P(Y = 1) in the population the rule is for.
    kappa : float
        How many benign errors a harmful one is worth: the rule is :math:`\kappa u < v`.
    kind : {"punitive", "assistive"}
        Punitive: selection harms, so u is the false positive rate and v the false negative rate.
        Assistive: selection helps, and the two change places.
    minimum_benefit : float, default 0.1
        Benefit of a person who suffers the harmful error, in (0, 1).
    order : float, default 1
        Order of the index.

    Returns
    -------
    BenefitDesign
        `str()` of it says what was chosen and what to beware of.

    Raises
    ------
    InvalidParameterError
        If the ratio cannot be encoded at this base rate.

    Notes
    -----
    See `equipoise.stats.inequality.cap`: the cap is exact, the minimum of the index over the models
    that violate the ratio, and attained at a corner of the error plane.

    Examples
    --------
    Blackstone: better that ten guilty persons escape than that one innocent suffer.

    >>> design = benefit_design(0.4, 10, "punitive", order=0.5)
    >>> [[round(b, 3) for b in row] for row in design.matrix]
    [[1.0, 1.0], [0.1, 0.865]]
    >>> round(design.cap, 5), round(design.largest_harm, 4), design.direct_limit
    (0.00248, 0.0044, 0.1)

    A false positive rate of 0.4% passes the cap; ten to one itself allows up to 10%.
    """
    scheme = kappa_scheme(
        base_rate=base_rate, kappa=kappa, kind=kind, minimum_benefit=minimum_benefit
    )
    found = index_cap(scheme, order=order)
    return BenefitDesign(
        scheme=scheme,
        order=float(order),
        cap=found.cap,
        binding=found.binding,
        largest_harm=found.largest_harm,
    )

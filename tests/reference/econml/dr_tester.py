"""Write values of EconML's `DRTester` for `test_econml.py`; run in an environment with EconML.

python -m venv .venv-econml && .venv-econml/bin/pip install econml
.venv-econml/bin/python tests/reference/econml/dr_tester.py > tests/reference/econml/values.json
"""

import json
import sys

import econml
import numpy as np
from econml.metalearners import TLearner
from econml.validate import DRTester
from sklearn.linear_model import LinearRegression, LogisticRegression


def experiment():
    """Rows that `test_econml.py` makes again."""
    rng = np.random.default_rng(11)
    n = 4_000
    x = rng.normal(size=n)
    t = rng.integers(2, size=n)
    y = x + t * (1.0 + 0.5 * x) + rng.normal(size=n)
    return x, t, y


x, t, y = experiment()
train = np.arange(len(x)) < 2_000
model = TLearner(models=LinearRegression()).fit(y[train], t[train], X=x[train, None])
tester = DRTester(
    model_regression=LinearRegression(), model_propensity=LogisticRegression(), cate=model
)
tester.fit_nuisance(x[~train, None], t[~train], y[~train], x[train, None], t[train], y[train])
blp = tester.evaluate_blp(x[~train, None], x[train, None])
score, effect = np.asarray(tester.dr_val_).ravel(), model.effect(x[~train, None])
group = np.arange(len(score)) % 2
json.dump(
    {
        "econml": econml.__version__,
        "error": [float((effect - score)[group == k].mean()) for k in (0, 1)],
        "effect": [float(score[group == k].mean()) for k in (0, 1)],
        "slope": float(blp.params[0]),
        "slope_se": float(blp.errs[0]),
        "ate": float(np.asarray(tester.ate_val).ravel()[0]),
    },
    sys.stdout,
)

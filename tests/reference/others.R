# Values of R for others.py. Run: Rscript others.R > others.json
# Data are made without random numbers, so that any language can make them.
suppressMessages({library(survey); library(coin); library(multcomp); library(epitools); library(jsonlite)})
packages <- c("survey", "coin", "multcomp", "epitools", "clubSandwich", "pROC", "metafor")
out <- list(versions = as.list(sapply(packages, function(p) as.character(packageVersion(p)))),
            R = paste(R.version$major, R.version$minor, sep = "."))

# A ratio of means in clusters with weights.
i <- 1:240
d <- data.frame(u = (i * 7919) %% 101 / 10, d = 1 + (i * 31) %% 17, w = 1 + (i * 13) %% 5, id = (i - 1) %/% 6)
r <- svyratio(~u, ~d, svydesign(~id, weights = ~w, data = d))
out$ratio <- list(value = as.numeric(coef(r)), se = as.numeric(SE(r)), clusters = 40)

# Permutation tests: 0/1 and real outcomes, two and three groups, and in strata.
y <- as.integer((i * i * 7 + i) %% 11 < 4); g2 <- factor(i %% 2); g3 <- factor(i %% 3); s <- factor((i - 1) %/% 60)
chi <- function(...) as.numeric(statistic(independence_test(..., teststat = "quadratic")))
out$coin <- list(two = chi(y ~ g2), three = chi(y ~ g3), real = chi(d$u ~ g2),
                 strata = chi(y ~ g2 | s), cmh = as.numeric(statistic(cmh_test(UCBAdmissions))))

# Single-step p-values of all contrasts to a control.
est <- c(.30, .36, .25, .41); v <- diag(c(.0012, .0010, .0020, .0011))
K <- cbind(-1, diag(3))
names(est) <- paste0("g", 1:4); dimnames(v) <- list(names(est), names(est))
set.seed(1)
a <- summary(glht(parm(est, v), linfct = K), test = adjusted("single-step", abseps = 1e-6, maxpts = 1e6))
out$single_step <- list(z = as.numeric(a$test$tstat), p = as.numeric(a$test$pvalues))

# Matched pairs of decisions.
pairs <- list(c(40, 12, 5, 43), c(10, 3, 9, 8), c(300, 25, 25, 150), c(5, 0, 6, 2))
out$mcnemar <- lapply(pairs, function(p) list(table = p,
  statistic = unname(mcnemar.test(matrix(p, 2), correct = FALSE)$statistic),
  exact = binom.test(p[2], p[2] + p[3])$p.value))

# One proportion.
ones <- list(c(0, 10), c(3, 20), c(81, 263), c(1, 1), c(50, 1000))
out$binom <- lapply(ones, function(t) { b <- binom.test(t[1], t[2], p = .1)
  list(x = t[1], n = t[2], low = b$conf.int[1], high = b$conf.int[2]) })
# Two proportions: conditional mid-P, twice the smaller tail.
tables <- list(c(10, 100, 20, 90), c(1, 12, 6, 11), c(0, 8, 5, 9), c(30, 60, 45, 60))
out$midp <- suppressWarnings(lapply(tables, function(t) list(table = t,
  p = tab2by2.test(matrix(c(t[2] - t[1], t[4] - t[3], t[1], t[3]), 2))$p.value[2, "midp.exact"])))
# The speed of light, as in NIST's Michelso.
out$michelso <- 299 + morley$Speed / 1000
cat(toJSON(out, digits = I(15), auto_unbox = TRUE, pretty = TRUE), "\n")

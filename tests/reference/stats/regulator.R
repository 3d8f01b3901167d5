# Values of R for test_regulator_in_r.py. Run: Rscript regulator.R > regulator.json
# R 4.2.2, survey 4.1-1, epitools 0.5-10.1, metafor 3.8-1, multcomp 1.4-22, jsonlite 1.8.4.
suppressMessages({library(survey); library(metafor); library(epitools); library(multcomp); library(jsonlite)})
out <- list()

# Two proportions.
pairs <- list(c(3, 20, 16, 80), c(5, 48, 14, 60), c(0, 10, 3, 50), c(20, 200, 50, 220), c(9, 9, 4, 7))
out$pairs <- lapply(pairs, function(t) {
  m <- matrix(c(t[1], t[2] - t[1], t[3], t[4] - t[3]), 2, byrow = TRUE)
  p <- suppressWarnings(prop.test(m, correct = FALSE))
  list(table = t, fisher = fisher.test(m)$p.value, chi_square = unname(p$statistic),
       epitools = suppressWarnings(tab2by2.test(m))$p.value[2, "fisher.exact"])
})

# The studentised range.
k <- c(2, 3, 5, 7, 14)
out$range <- list(k = k, q95 = qtukey(.95, k, Inf), q99 = qtukey(.99, k, Inf),
                  tail = ptukey(4, k, Inf, lower.tail = FALSE))

# Dunnett's one-sided value for unequal sizes, control first, by multivariate normal quadrature.
n <- c(100, 110, 120, 80)
b <- sqrt((1 / n[1]) / (1 / n[1] + 1 / n[-1]))
corr <- outer(b, b); diag(corr) <- 1
set.seed(1)
out$dunnett <- list(n = n, value = mvtnorm::qmvnorm(.95, tail = "lower.tail", corr = corr,
                    algorithm = mvtnorm::Miwa(steps = 4096))$quantile)

# Strata: UCBAdmissions, [Admit, Gender, Dept].
u <- UCBAdmissions
cmh <- function(x, ...) { m <- mantelhaen.test(x, ...); unname(m$statistic) }
mh <- function(measure) {
  r <- rma.mh(ai = u[1, 2, ], bi = u[2, 2, ], ci = u[1, 1, ], di = u[2, 1, ], measure = measure,
              correct = FALSE)
  list(value = as.numeric(r$b), se = r$se, BD = r$BD, TA = r$TA)
}
out$ucb <- list(
  x1 = unname(u[1, 2, ]), n1 = unname(colSums(u[, 2, ])), x0 = unname(u[1, 1, ]),
  n0 = unname(colSums(u[, 1, ])),
  cmh = cmh(u, correct = FALSE), cmh_yates = cmh(u, correct = TRUE),
  exact = mantelhaen.test(u, exact = TRUE)$p.value,
  OR = mh("OR"), RR = mh("RR"), RD = mh("RD"))

# Several groups: 3 x 2 x K.
set.seed(2)
g <- array(rpois(24, 9) + 1, c(3, 2, 4))
m <- mantelhaen.test(g)
out$several <- list(ones = g[, 1, ], zeros = g[, 2, ], statistic = unname(m$statistic),
                    df = unname(m$parameter))

# A real outcome with stratum effects: the coefficient of the group.
set.seed(3)
d <- data.frame(k = rep(1:8, c(4, 6, 9, 12, 15, 20, 25, 30)))
d$a <- as.integer(runif(nrow(d)) < .4); d$y <- rnorm(nrow(d)) + d$k / 3 - .4 * d$a
out$regression <- list(y = d$y, a = d$a, k = d$k,
                       coefficient = unname(coef(lm(y ~ a + factor(k), d))["a"]))

# A paired t test is the smallest stratified comparison.
p <- t.test(d$y[1:20], d$y[21:40], paired = TRUE)
out$paired <- list(first = d$y[1:20], second = d$y[21:40], p = p$p.value,
                   low = p$conf.int[1], high = p$conf.int[2])

# Tukey's comparisons of means of equal variance are those of multcomp, with infinite df.
est <- c(1.0, 1.4, 2.1); v <- diag(c(.04, .09, .05))
names(est) <- dimnames(v) <- NULL
K <- rbind(c(-1, 1, 0), c(-1, 0, 1), c(0, -1, 1))
s <- summary(glht(parm(est, v), linfct = K), test = adjusted("none"))
out$contrasts <- list(z = as.numeric(s$test$tstat))

# Survey designs.
set.seed(4)
s <- data.frame(psu = rep(1:24, each = 10), g = rep(0:2, 80), w = runif(240, 1, 3))
s$h <- (s$psu - 1) %/% 6; s$y <- rnorm(240) + rnorm(24)[s$psu]; s$N <- c(20, 30, 12, 50)[s$h + 1]
one <- function(des) { m <- svyby(~y, ~g, des, svymean, covmat = TRUE)
  list(mean = unname(coef(m)), cov = unname(vcov(m)), df = degf(des)) }
lonely <- s[!(s$h == 1 & s$psu > 7), ]
out$survey <- list(rows = s, plain = one(svydesign(~psu, strata = ~h, weights = ~w, data = s)),
  fpc = one(svydesign(~psu, strata = ~h, weights = ~w, fpc = ~N, data = s)),
  rows_as_units = one(svydesign(~1, strata = ~h, weights = ~w, data = s)))
options(survey.lonely.psu = "adjust")
out$survey$adjust <- one(svydesign(~psu, strata = ~h, weights = ~w, data = lonely))
options(survey.lonely.psu = "certainty")
out$survey$certainty <- one(svydesign(~psu, strata = ~h, weights = ~w, data = lonely))

# Random tables: 2 x 2, 2 x 2 x K sparse and dense, 3 x 2 x K.
set.seed(5)
out$random_pairs <- lapply(1:25, function(i) {
  n <- sample(c(5, 12, 40, 150, 900), 2, replace = TRUE)
  x <- rbinom(2, n, runif(1, .03, .9))
  m <- matrix(c(x[1], n[1] - x[1], x[2], n[2] - x[2]), 2, byrow = TRUE)
  o <- suppressWarnings(if (all(m > 0)) oddsratio.wald(m)$measure[2, 1] else NA)
  r <- suppressWarnings(if (all(m > 0)) riskratio.wald(m, rev = "columns")$measure[2, 1] else NA)
  list(table = c(x[1], n[1], x[2], n[2]), fisher = fisher.test(m)$p.value, odds = o, risk = r)
})
out$random_strata <- lapply(1:12, function(i) {
  k <- sample(2:9, 1); size <- c(3, 15, 80)[i %% 3 + 1]
  n1 <- rpois(k, size) + 1; n0 <- rpois(k, size) + 1; rate <- runif(k, .1, .9)
  x1 <- rbinom(k, n1, rate); x0 <- rbinom(k, n0, rate)
  if (i == 1) { x1 <- pmin(x1 + 2, n1) }
  a <- array(rbind(x1, x0, n1 - x1, n0 - x0), c(2, 2, k))
  list(x1 = x1, n1 = n1, x0 = x0, n0 = n0, cmh = cmh(a, correct = FALSE),
       cmh_yates = cmh(a, correct = TRUE), exact = mantelhaen.test(a, exact = TRUE)$p.value,
       odds = unname(mantelhaen.test(a)$estimate))
})
out$random_several <- lapply(1:6, function(i) {
  k <- sample(2:6, 1); ones <- matrix(rpois(4 * k, 6) + 1, 4); zeros <- matrix(rpois(4 * k, 9) + 1, 4)
  m <- mantelhaen.test(array(rbind(ones, zeros)[c(rbind(1:4, 5:8)), ], c(2, 4, k)))
  list(ones = ones, zeros = zeros, statistic = unname(m$statistic), df = unname(m$parameter))
})

# Simultaneous comparisons with a shared comparator: the correlation and critical value of multcomp.
b <- c(.2, -.1, .4); V <- matrix(.02, 3, 3) + diag(c(.03, .05, .02))
g <- glht(parm(b, V), linfct = diag(3))
set.seed(6)
out$shared <- list(estimate = b, cov = V,
  critical = attr(confint(g)$confint, "calpha"), p = as.numeric(summary(g)$test$pvalues))

# Gaps under a design: each group beside the rest is a regression on its indicator.
gap <- function(des) { lapply(0:2, function(k) {
  des <- update(des, own = as.numeric(g == k)); f <- svyglm(y ~ own, design = des); list(gap = unname(coef(f)[2]), se = unname(SE(f)[2])) }) }
out$survey$gaps <- list(plain = gap(svydesign(~psu, strata = ~h, weights = ~w, data = s)),
  fpc = gap(svydesign(~psu, strata = ~h, weights = ~w, fpc = ~N, data = s)),
  rows_as_units = gap(svydesign(~1, strata = ~h, weights = ~w, data = s)))
options(survey.lonely.psu = "fail")
one_rate <- function(des) { m <- svyby(~one, ~g, update(des, one = as.numeric(y > 0)), svymean, covmat = TRUE)
  list(mean = unname(coef(m)), cov = unname(vcov(m))) }
out$survey$rates <- list(plain = one_rate(svydesign(~psu, strata = ~h, weights = ~w, data = s)),
  rows_as_units = one_rate(svydesign(~1, strata = ~h, data = s, weights = rep(1, 240))))
cat(toJSON(out, digits = NA, auto_unbox = TRUE, pretty = 1))

# Reference numbers of test_unit_sums_in_r.py. Needs clubSandwich, survey and jsonlite:
#   Rscript tests/reference/stats/few_units.R > tests/reference/stats/few_units.json
suppressPackageStartupMessages({library(clubSandwich); library(survey)})
options(digits = 17)

# Unit means and weights without random numbers, so that any language can make them.
units <- function(n, power) {
  i <- seq_len(n)
  data.frame(x = (i * 7919) %% 101 / 10 + i %% 3, w = (1 + (i * 31) %% 17)^power, id = i)
}

one <- function(n, power) {
  d <- units(n, power)
  fit <- lm(x ~ 1, data = d, weights = w)
  cr0 <- vcovCR(fit, cluster = d$id, type = "CR0", target = rep(1, n), inverse_var = FALSE)
  cr2 <- vcovCR(fit, cluster = d$id, type = "CR2", target = rep(1, n), inverse_var = FALSE)
  sat <- coef_test(fit, vcov = cr0, test = "Satterthwaite")
  sat2 <- coef_test(fit, vcov = cr2, test = "Satterthwaite")
  design <- svydesign(ids = ~id, weights = ~w, data = d)
  mean <- svymean(~x, design)
  sprintf('{"n": %d, "power": %g, "mean": %.15g, "cr0": %.15g, "df_cr0": %.15g, "cr2": %.15g, "df_cr2": %.15g, "survey_se": %.15g}',
          n, power, coef(fit)[[1]], cr0[1, 1], sat$df, cr2[1, 1], sat2$df, SE(mean)[[1]])
}

# Rows of clusters of unequal size: the mean of rows, clusters as units.
rows <- function(n, biggest) {
  i <- seq_len(n)
  size <- 1 + (i * 5) %% biggest
  id <- rep(i, size)
  k <- seq_along(id)
  data.frame(id = id, y = (k * 104729) %% 97 / 10 + (id * 13) %% 7)
}
clustered <- function(n, biggest) {
  d <- rows(n, biggest)
  fit <- lm(y ~ 1, data = d)
  cr0 <- vcovCR(fit, cluster = d$id, type = "CR0")
  cr1 <- vcovCR(fit, cluster = d$id, type = "CR1")
  sprintf('{"n": %d, "biggest": %d, "mean": %.15g, "cr0": %.15g, "cr1": %.15g}',
          n, biggest, coef(fit)[[1]], cr0[1, 1], cr1[1, 1])
}

# Two sides with one working variance: coefficient of the difference.
pair <- function(n1, n2, power) {
  d <- rbind(cbind(units(n1, power), side = 0), cbind(units(n2, power), side = 1))
  d$id <- seq_len(nrow(d))
  fit <- lm(x ~ side, data = d, weights = w)
  cr0 <- vcovCR(fit, cluster = d$id, type = "CR0", target = rep(1, nrow(d)), inverse_var = FALSE)
  sat <- coef_test(fit, vcov = cr0, test = "Satterthwaite")
  sprintf('{"n1": %d, "n2": %d, "power": %g, "difference": %.15g, "cr0": %.15g, "df_cr0": %.15g}',
          n1, n2, power, coef(fit)[[2]], cr0[2, 2], sat$df[[2]])
}

# Korn and Graubard: weighted rows, and rows of clusters.
beta_interval <- function(design, d) {
  found <- svyciprop(~y, design, method = "beta")
  ends <- confint(found)
  sprintf('"rows": %d, "rate": %.15g, "low": %.15g, "high": %.15g', nrow(d), coef(found)[[1]], ends[[1]], ends[[2]])
}
proportion <- function(n, power, cut) {
  d <- units(n, power)
  d$y <- as.numeric(d$x > cut)
  sprintf('{"n": %d, "power": %g, "cut": %g, %s}', n, power, cut,
          beta_interval(svydesign(ids = ~1, weights = ~w, data = d), d))
}
clustered_proportion <- function(n, biggest, cut) {
  d <- rows(n, biggest)
  d$y <- as.numeric(d$y > cut)
  sprintf('{"n": %d, "biggest": %d, "cut": %g, %s}', n, biggest, cut,
          beta_interval(svydesign(ids = ~id, weights = ~1, data = d), d))
}

cat(sprintf('{"versions": {"R": "%s", "clubSandwich": "%s", "survey": "%s"},\n',
            as.character(getRversion()), packageVersion("clubSandwich"), packageVersion("survey")))
cat('"weighted": [', paste(one(6, 0), one(9, 1), one(25, 1), one(40, 2), sep = ",\n"), '],\n')
cat('"clustered": [', paste(clustered(7, 4), clustered(12, 9), sep = ",\n"), '],\n')
cat('"proportions": [', paste(proportion(25, 1, 8), proportion(40, 2, 4), proportion(60, 0.5, 9), sep = ",\n"), '],\n')
cat('"clustered_proportions": [', paste(clustered_proportion(7, 4, 8), clustered_proportion(12, 9, 6), sep = ",\n"), '],\n')
cat('"pairs": [', paste(pair(6, 11, 0), pair(8, 30, 1), sep = ",\n"), ']}\n')

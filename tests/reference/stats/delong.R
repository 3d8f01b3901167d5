# Values of pROC for test_delong_in_r.py. Run: Rscript delong.R > delong.json
suppressMessages({library(pROC); library(jsonlite)})
i <- 0:399
y <- as.integer((i * 7919) %% 10 < 4)
a <- ((i * 31) %% 50) / 50 + 0.3 * y
b <- ((i * 17) %% 20) / 20 + 0.4 * y
g <- i %% 2
quiet <- function(...) suppressMessages(roc(..., direction = "<"))
one <- quiet(y, a); two <- quiet(y, b)
left <- quiet(y[g == 0], a[g == 0]); right <- quiet(y[g == 1], a[g == 1])
out <- list(
  versions = list(R = as.character(getRversion()), pROC = as.character(packageVersion("pROC"))),
  auc = as.numeric(auc(one)), variance = var(one), auc_b = as.numeric(auc(two)), variance_b = var(two),
  covariance = cov(one, two), paired_z = unname(roc.test(one, two, method = "delong")$statistic),
  groups = c(as.numeric(auc(left)), as.numeric(auc(right))), group_variances = c(var(left), var(right)))
cat(toJSON(out, digits = 15, auto_unbox = TRUE), "\n")

# Groups of respondents: how many, the answers of each with intervals, a picture, and the groups of new respondents.
library(poLCA)
library(ggplot2)
survey <- read.csv("survey.csv", stringsAsFactors = TRUE, na.strings = "")
codes <- as.data.frame(lapply(survey, as.integer))
formula <- as.formula(paste("cbind(", paste(names(codes), collapse = ", "), ") ~ 1"))
set.seed(1)
fits <- lapply(1:8, function(k) {
  poLCA(formula, codes, nclass = k, nrep = 10, maxiter = 5000, na.rm = FALSE, verbose = FALSE)
})
bic <- sapply(fits, function(fit) fit$bic)
print(data.frame(n_clusters = 1:8, bic = bic))
best <- fits[[which.min(bic)]]
profiles <- do.call(rbind, lapply(names(best$probs), function(question) {
  p <- best$probs[[question]]
  error <- best$probs.se[[question]]
  data.frame(cluster = rep(seq_len(nrow(p)), ncol(p)), question = question,
             level = rep(levels(survey[[question]]), each = nrow(p)),
             probability = c(p), low = c(p - 1.645 * error), high = c(p + 1.645 * error))
}))
print(profiles)
ggplot(profiles, aes(probability, level, xmin = low, xmax = high)) + geom_pointrange() +
  facet_grid(question ~ cluster, scales = "free_y")
ggsave("profiles.pdf")
new <- read.csv("new.csv", na.strings = "")
for (question in names(survey)) {
  new[[question]] <- as.integer(factor(new[[question]], levels = levels(survey[[question]])))
}
print(poLCA.posterior(best, as.matrix(new)))

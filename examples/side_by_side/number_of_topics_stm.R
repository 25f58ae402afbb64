# Numbers of topics compared on the same held-out words, with errors of the differences, coherence and exclusivity.
library(stm)
posts <- read.csv("posts.csv")
processed <- textProcessor(posts$text, metadata = posts)
out <- prepDocuments(processed$documents, processed$vocab, processed$meta, lower.thresh = 10)
held <- make.heldout(out$documents, out$vocab, seed = 1)
K <- c(10, 20, 40, 80)
fits <- lapply(K, function(k) stm(held$documents, held$vocab, K = k, seed = 1))
scores <- sapply(fits, function(fit) eval.heldout(fit, held$missing)$doc.heldout)
difference <- scores - scores[, which.max(colMeans(scores))]
table <- data.frame(
  K = K,
  score = colMeans(scores),
  difference = colMeans(difference),
  error = apply(difference, 2, sd) / sqrt(nrow(difference)),
  coherence = sapply(fits, function(fit) mean(semanticCoherence(fit, held$documents))),
  exclusivity = sapply(fits, function(fit) mean(exclusivity(fit)))
)
print(table)
pdf("search.pdf", width = 9, height = 3)
par(mfrow = c(1, 3))
plot(K, table$score, type = "b", main = "held-out score")
segments(K, table$score - 2 * table$error, K, table$score + 2 * table$error)
plot(K, table$coherence, type = "b", main = "coherence")
plot(K, table$exclusivity, type = "b", main = "exclusivity")
dev.off()

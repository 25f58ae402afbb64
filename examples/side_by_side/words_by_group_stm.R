# Words by which parties differ within a topic: words of one party, words that set them apart, a picture.
library(stm)
posts <- read.csv("posts.csv")
processed <- textProcessor(posts$text, metadata = posts)
out <- prepDocuments(processed$documents, processed$vocab, processed$meta, lower.thresh = 10)
model <- stm(out$documents, out$vocab, K = 20, prevalence = ~ party, content = ~ party, data = out$meta, seed = 1)
sageLabels(model, n = 7)
parties <- model$settings$covariates$yvarlevels
d <- model$beta$logbeta[[which(parties == "D")]]
r <- model$beta$logbeta[[which(parties == "R")]]
for (k in 1:20) {
  often <- which(pmax(exp(d[k, ]), exp(r[k, ])) > 0.002)
  ranked <- often[order(d[k, often] - r[k, often])]
  chosen <- c(tail(ranked, 5), head(ranked, 5))
  print(data.frame(topic = k, word = out$vocab[chosen], log_ratio = (d - r)[k, chosen]))
}
pdf("words.pdf", width = 16, height = 12)
par(mfrow = c(4, 5))
for (k in 1:20) {
  plot(model, type = "perspectives", topics = k)
}
dev.off()

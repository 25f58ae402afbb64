# Topics whose prevalence depends on party and year: words, effect of the party, course by party, typical posts.
library(stm)
posts <- read.csv("posts.csv")
processed <- textProcessor(posts$text, metadata = posts)
out <- prepDocuments(processed$documents, processed$vocab, processed$meta, lower.thresh = 10)
model <- stm(out$documents, out$vocab, K = 20, prevalence = ~ party * s(year), data = out$meta, seed = 1)
labelTopics(model, n = 7)
effect <- estimateEffect(1:20 ~ party * s(year), model, metadata = out$meta)
parties <- plot(effect, "party", method = "difference", cov.value1 = "R", cov.value2 = "D", omit.plot = TRUE)
difference <- unlist(parties$means)
ends <- do.call(rbind, parties$cis)
print(data.frame(topic = 1:20, difference = difference, low = ends[, 1], high = ends[, 2]))
pdf("years.pdf", width = 12, height = 8)
par(mfrow = c(3, 4))
for (k in order(-abs(difference))[1:12]) {
  plot(effect, "year", method = "continuous", topics = k, moderator = "party", moderator.value = "D",
       linecol = "blue", printlegend = FALSE)
  plot(effect, "year", method = "continuous", topics = k, moderator = "party", moderator.value = "R",
       linecol = "red", printlegend = FALSE, add = TRUE)
  legend("topleft", c("D", "R"), lwd = 2, col = c("blue", "red"))
}
dev.off()
findThoughts(model, texts = out$meta$text, n = 3)

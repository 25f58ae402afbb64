# Topics by keywords: their words, how often keywords are used, a picture of this, differences between parties.
library(keyATM)
library(quanteda)
posts <- read.csv("posts.csv")
words <- tokens(posts$text, remove_punct = TRUE, remove_numbers = TRUE, remove_symbols = TRUE, remove_url = TRUE)
words <- tokens_remove(tokens_tolower(words), stopwords("english"), min_nchar = 3)
counts <- dfm_trim(dfm(words), min_docfreq = 10)
used <- ntoken(counts) > 0
docs <- keyATM_read(counts[used, ])
keywords <- list(Economy = c("tax", "market", "budget"), War = c("war", "troops"))
model <- keyATM(
  docs, no_keyword_topics = 18, keywords = keywords, model = "covariates",
  model_settings = list(covariates_data = posts[used, ], covariates_formula = ~ party), options = list(seed = 1)
)
print(top_words(model, 10))
print(model$pi)
strata <- by_strata_DocTopic(model, by_var = "partyR", labels = c("D", "R"))
print(summary(strata))
save_fig(plot_pi(model), "rates.pdf")
save_fig(visualize_keywords(docs, keywords), "keywords.pdf")
save_fig(plot(strata, var_name = "party"), "party.pdf")

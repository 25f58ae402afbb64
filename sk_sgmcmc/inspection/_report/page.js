"use strict";
// Shows one topic at a time, and adds the search, the order of the list and the keys. The page is complete without it.
(() => {
  const root = document.documentElement;
  const list = document.querySelector(".list");
  const items = [...list.querySelectorAll("li")];
  if (!items.length) return;
  const make = (name, options, ...children) => {
    const element = Object.assign(document.createElement(name), options);
    element.append(...children);
    return element;
  };
  const article = (topic) => document.getElementById("topic-" + topic);
  const visible = () => [...list.children].filter((item) => !item.hidden);
  let current = null;

  function show(topic) {
    if (!article(topic)) return false;
    current = topic;
    for (const element of document.querySelectorAll("[data-topic]")) {
      element.classList.toggle("current", element.dataset.topic === topic);
    }
    for (const item of items) {
      const link = item.querySelector("a");
      if (item.dataset.topic === topic) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    return true;
  }

  function open(topic) {
    if (!show(topic)) return;
    history.replaceState(null, "", "#topic-" + topic);
    const heading = article(topic).querySelector("h3");
    heading.focus({ preventScroll: true });
    article(topic).scrollIntoView();
    inView(topic);
  }

  // Scroll the list only, so that the page stays where it is.
  function inView(topic) {
    const item = items.find((each) => each.dataset.topic === topic);
    const top = item.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + item.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = top - list.clientHeight / 3;
    }
  }

  function next(from, step) {
    const shown = visible();
    const place = shown.findIndex((item) => item.dataset.topic === from);
    return place < 0 ? shown[0] : shown[Math.min(Math.max(place + step, 0), shown.length - 1)];
  }

  // The tools above the list.
  const search = make("input", { type: "search", autocomplete: "off" });
  const sort = make("select", {});
  for (const [value, text] of [["share", "Share"], ["topic", "Number"], ["stability", "Stability"]]) {
    sort.append(make("option", { value }, text));
  }
  const count = make("output", {});
  count.setAttribute("aria-live", "polite");
  document.querySelector(".tools").append(
    make("label", {}, "Search words", search), make("label", {}, "Order", sort), count,
  );

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    for (const item of items) {
      const text = (item.textContent + "\n" + item.dataset.words).toLowerCase();
      item.hidden = wanted !== "" && !wanted.split(/\s+/).every((word) => text.includes(word));
    }
    count.textContent = visible().length + " of " + items.length + " topics";
  }
  function order() {
    const sign = sort.value === "topic" ? 1 : -1;
    const key = (item) => sign * Number(item.dataset[sort.value]);
    list.append(...[...items].sort((a, b) => key(a) - key(b) || a.dataset.topic - b.dataset.topic));
  }
  search.addEventListener("input", filter);
  sort.addEventListener("change", order);

  // Buttons at the top of each topic.
  for (const element of document.querySelectorAll(".topic")) {
    const button = (text, action) => {
      const made = make("button", { type: "button" }, text);
      made.addEventListener("click", action);
      return made;
    };
    element.prepend(make("div", { className: "steps" },
      button("Previous", () => open(next(current, -1).dataset.topic)),
      button("Next", () => open(next(current, 1).dataset.topic)),
      button("List", () => toList()),
    ));
  }
  function toList() {
    const item = visible().find((each) => each.dataset.topic === current) || visible()[0];
    if (!item) return search.focus();
    item.querySelector("a").focus();
    document.getElementById("topics").scrollIntoView();
    inView(item.dataset.topic);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#topic-"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(link.getAttribute("href").slice("#topic-".length));
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = document.activeElement;
    if (event.key === "Escape") return toList();
    if (at.matches("input, select")) {
      if (at === search && event.key === "ArrowDown" && visible().length) {
        event.preventDefault();
        visible()[0].querySelector("a").focus();
      }
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      return search.focus();
    }
    const mark = at.closest(".map a");
    if (event.key === " " && mark) {
      event.preventDefault();
      return open(mark.dataset.topic);
    }
    const step = { j: 1, k: -1 }[event.key] || (at.closest(".list, .map") && { ArrowDown: 1, ArrowUp: -1 }[event.key]);
    if (!step) return;
    event.preventDefault();
    if (mark) {
      const to = next(mark.dataset.topic, step);
      if (to) document.querySelector('.map a[data-topic="' + to.dataset.topic + '"]').focus();
      return;
    }
    const item = at.closest(".list li");
    const to = item ? next(item.dataset.topic, step) : next(current, step);
    if (!to) return;
    if (item) {
      to.querySelector("a").focus({ preventScroll: true });
      inView(to.dataset.topic);
    } else open(to.dataset.topic);
  });

  root.classList.add("js");
  filter();
  const asked = () => location.hash.startsWith("#topic-") && location.hash.slice("#topic-".length);
  show(items[0].dataset.topic);
  if (asked()) open(asked());
  window.addEventListener("hashchange", () => asked() && open(asked()));
})();

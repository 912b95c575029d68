/** What the gateway's pages share: their texts, their elements, what they tell, and their views. */

/** @type {Record<string, Record<string, string>>} */
let tables = { en: {} };
let own = tables.en;

/**
 * Have these texts, a table for each language; what one lacks is said in English.
 * @param {Record<string, Record<string, string>>} given
 */
export const learn = (given) => {
  tables = given;
  own = given[(navigator.language ?? "en").slice(0, 2)] ?? given.en;
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = say(each.dataset.word);
};

/**
 * A text, with what stands for {0}, {1} and so on.
 * @param {string} word @param {...unknown} values @returns {string}
 */
export const say = (word, ...values) =>
  (own[word] ?? tables.en[word] ?? word).replace(/\{(\d)\}/g, (_, at) => `${values[at] ?? ""}`);

/**
 * An element with properties, listeners (`onclick`) and children; text stays text.
 * @param {string} name @param {Record<string, unknown>} about @param {...(Node|string)} inside
 */
export const make = (name, about = {}, ...inside) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(about)) {
    if (key.startsWith("aria-") || key === "for" || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...inside);
  return element;
};
export const button = (word, onclick, about = {}) =>
  make("button", { type: "button", textContent: say(word), onclick, ...about });
export const press = (shown, on) => shown.setAttribute("aria-pressed", `${Boolean(on)}`);

let fields = 0;
export const field = (word, about = {}) => {
  const id = `field-${++fields}`;
  const input = make("input", { id, autocomplete: "off", ...about });
  return { input, box: make("div", { className: "grow" }, make("label", { for: id }, say(word)), input) };
};

export const notice = (text, wrong = false) => {
  const place = document.getElementById("notice");
  place.textContent = text;
  place.classList.toggle("wrong", wrong);
};
/** Run what may be refused, and tell the user why it was. */
export const attempt = (run) => async (...given) => {
  try {
    notice("");
    return await run(...given);
  } catch (error) {
    notice(say("refused", error.reason ?? error.message), true);
    return undefined;
  }
};

/** The address of the tree, with the proof of a user if there is one. */
export const treeAddress = (proof) =>
  `${location.protocol.replace("http", "ws")}//${location.host}/tree?${proof}`;
export const proofOf = (user, pass) => (pass ? `${new URLSearchParams({ user, pass })}` : "");

/** The user of an address such as sip:bob@example.com. */
export const nameOf = (address = "") => address.replace(/^.*?(?:sips?|tel):/, "").split(/[@;>]/)[0];

/** The view that the address names, and what it fills in: `#call?to=bob`. */
export const here = () => {
  const [view, query] = location.hash.slice(1).split("?");
  const first = document.querySelector("nav a").getAttribute("href").slice(1);
  return { view: view || first, given: new URLSearchParams(query) };
};
const route = () => {
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${here().view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  for (const view of document.querySelectorAll("main > [id]:not(#notice)")) view.draw();
};
/** Show the view that the address names, now and whenever it changes. */
export const begin = () => {
  addEventListener("hashchange", route);
  route();
};

/**
 * Views of a model, each a part of the page that is drawn anew when its parts of the model change.
 * @param {EventTarget} model
 */
export const viewsOf = (model) => class extends HTMLElement {
  static parts = [];

  connectedCallback() {
    model.addEventListener("change", ({ detail }) => this.constructor.parts.includes(detail) && this.draw());
    this.draw();
  }

  draw() {}
};

/** Creates DOM elements. Texts are set as text, never as HTML, and only if they changed. */

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

/** Set the text of an element if it differs. */
export function write(target: HTMLElement, value: string): void {
  if (target.textContent !== value) {
    target.textContent = value;
  }
}

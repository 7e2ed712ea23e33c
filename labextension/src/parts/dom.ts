/** Elements made by hand: texts are only ever set as text, and only where they changed. */

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

/** Put a text into an element, unless it is there already. */
export function write(target: HTMLElement, value: string): void {
  if (target.textContent !== value) {
    target.textContent = value;
  }
}

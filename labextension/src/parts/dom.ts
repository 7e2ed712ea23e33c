/** Plain DOM, for JupyterLab and for notebooks elsewhere. Texts are set as text, never as HTML, and only if they changed. */

/** Shows values in an element: the first time and again for each new value. */
export interface IDrawing<T> {
  draw(value: T): void;
  /** Ends what the drawing has started: timers, observers. */
  dispose?(): void;
}

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

/** A sign whose text has the same meaning; hidden from screen readers. */
export function sign(className = '', text = ''): HTMLSpanElement {
  const made = element('span', className, text);
  made.setAttribute('aria-hidden', 'true');
  return made;
}

/** Set a text if it differs. */
export function write(target: Node, value: string): void {
  if (target.textContent !== value) {
    target.textContent = value;
  }
}

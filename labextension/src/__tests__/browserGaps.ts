/** What JupyterLab's packages ask of a browser and jsdom has not. Imported before them. */
const page = globalThis as unknown as Record<string, unknown>;

class NoObserver {
  observe = (): void => undefined;
  unobserve = (): void => undefined;
  disconnect = (): void => undefined;
}

page.DragEvent ??= class extends MouseEvent {};
page.IntersectionObserver ??= NoObserver;
page.ResizeObserver ??= NoObserver;
page.requestIdleCallback ??= (callback: () => void) => setTimeout(callback, 0);
page.matchMedia ??= () => ({
  matches: false,
  addEventListener: () => undefined,
  removeEventListener: () => undefined,
  addListener: () => undefined,
  removeListener: () => undefined
});

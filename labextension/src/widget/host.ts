/** The part of anywidget's interface that the panel uses. */
export interface IWidgetModel {
  get(name: string): unknown;
  send(content: unknown): void;
  on(event: 'msg:custom', callback: (content: unknown) => void): void;
  off(event: 'msg:custom', callback: (content: unknown) => void): void;
}

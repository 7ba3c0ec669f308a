import { html } from 'htm/preact';

/**
 * The failed deliveries, grouped by handler and error.
 *
 * @param {object} props
 * @param {number} props.acted number of actions performed
 * @param {(action: import('./actions.js').Action) => void} props.ask
 */
export function Failures(props) {
  void props;
  return html`<h1 tabindex="-1">Failures</h1>`;
}

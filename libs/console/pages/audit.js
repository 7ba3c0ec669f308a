import { html } from 'htm/preact';

/**
 * What operators did with the console, newest first.
 *
 * @param {object} props
 * @param {number} props.acted number of actions performed
 */
export function AuditTrail(props) {
  void props;
  return html`<h1 tabindex="-1">Audit</h1>`;
}

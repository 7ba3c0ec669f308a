import { html } from 'htm/preact';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

/** What the operator may do: only look (`read`), or also act. */
export const Permission = createContext('read');

/**
 * A button of an action, disabled for an operator who may only look. The props are those of a button.
 *
 * @param {{ disabled?: boolean, title?: string, children?: unknown, [name: string]: unknown }} props
 */
export function ActionButton({ disabled, title, children, ...props }) {
  const readOnly = useContext(Permission) === 'read';
  return html`<button
    type="button"
    ...${props}
    disabled=${disabled || readOnly}
    title=${readOnly ? 'You may look, but not act.' : title}
  >
    ${children}
  </button>`;
}

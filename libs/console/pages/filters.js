import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import { STATES, dayAndTime, visible } from './format.js';

/** Parameters of the hash that are filters, with the names that the server uses. */
export const FILTERS = [
  'search',
  'state',
  'handler',
  'error',
  'eventType',
  'company',
  'from',
  'to',
];

/**
 * @param {Record<string, string>} params
 * @param {readonly string[]} [names] of the parameters that filter
 * @returns {Record<string, string>}
 */
export function filterOf(params, names = FILTERS) {
  return Object.fromEntries(names.flatMap((name) => (params[name] ? [[name, params[name]]] : [])));
}

/**
 * The filter of the list of events.
 *
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {readonly string[]} props.handlers
 * @param {readonly string[]} props.types event types of the list, as suggestions
 * @param {boolean} props.companies whether there are several companies
 * @param {(params: Record<string, string>) => void} props.onFilter
 */
export function Filters({ params, handlers, types, companies, onFilter }) {
  const names = [...new Set([...handlers, ...(params.handler ? [params.handler] : [])])];
  const fields = companies ? FILTERS : FILTERS.filter((name) => name !== 'company');
  return html`<${FilterForm} params=${params} names=${fields} onFilter=${onFilter}>
    <${TextField} label="Reference, transaction, event id or amount" name="search" />
    <label
      >State
      <select name="state">
        <option value="">any</option>
        ${[...STATES, 'unhandled', 'stale'].map((state) => html`<option value=${state}>${state}</option>`)}
      </select>
    </label>
    <label
      >Handler
      <select name="handler">
        <option value="">any</option>
        ${names.map((name) => html`<option value=${name}>${name}</option>`)}
      </select>
    </label>
    <${TextField} label="Error, or an error that differs only in ids" name="error" />
    <${TextField} label="Event type" name="eventType" suggestions=${types} />
    ${companies && html`<${TextField} label="Company" name="company" />`}
    <${TimeField} label="Received from" name="from" />
    <${TimeField} label="Received before" name="to" />
    <label
      >Order
      <select name="order">
        <option value="">newest first</option>
        <option value="oldest">oldest first</option>
      </select>
    </label>
  <//>`;
}

/**
 * A folded form whose fields are parameters of the address. A changed field applies at once.
 *
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {readonly string[]} props.names of the fields that filter
 * @param {(params: Record<string, string>) => void} props.onFilter
 * @param {unknown} [props.children] the fields
 */
export function FilterForm({ params, names, onFilter, children }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  /** The text that each time field shows. The parameter in the address can be more precise than this text. */
  const times = useRef(/** @type {Record<string, string>} */ ({}));
  useEffect(() => {
    for (const field of fieldsOf(form.current)) {
      const value = params[field.name] ?? '';
      field.value = field.type === 'datetime-local' ? toLocal(value) : value;
      times.current[field.name] = field.value;
    }
  }, [JSON.stringify(params), names.length]);

  const apply = () => {
    const given = fieldsOf(form.current).map(({ name, type, value }) => {
      if (type !== 'datetime-local') return [name, value.trim()];
      // The field has no milliseconds, and it is ambiguous in the hour that repeats when clocks go back.
      const untouched = value !== '' && value === times.current[name];
      return [name, untouched ? params[name] : fromLocal(value)];
    });
    onFilter(Object.fromEntries(given));
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    apply();
  };
  const used = names.filter((name) => params[name]);
  return html`<form
    ref=${form}
    class="filters"
    aria-label="Filter"
    onSubmit=${submit}
    onChange=${apply}
  >
    <details>
      <summary>
        Filter${used.length > 0 && ': '}
        <b>${used.map((name) => visible(filterText(name, params[name] ?? ''))).join(', ')}</b>
      </summary>
      <div class="fields">
        ${children}
        <button type="button" class="clear" onClick=${() => onFilter({})}>Clear</button>
      </div>
    </details>
  </form>`;
}

/** @param {{ label: string, name: string, suggestions?: readonly string[] }} props */
export function TextField({ label, name, suggestions = [] }) {
  return html`<label
    >${label}
    <input
      name=${name}
      maxlength="1000"
      list=${`${name}-suggestions`}
      autocomplete="off"
      spellcheck=${false}
    />
    <datalist id=${`${name}-suggestions`}>
      ${suggestions.map((text) => html`<option value=${text} />`)}
    </datalist>
  </label>`;
}

/** @param {{ label: string, name: string }} props */
export function TimeField({ label, name }) {
  return html`<label>${label} <input name=${name} type="datetime-local" step="1" /></label>`;
}

/**
 * @param {HTMLFormElement | null} form
 * @returns {(HTMLInputElement | HTMLSelectElement)[]}
 */
function fieldsOf(form) {
  return /** @type {any[]} */ ([...(form?.elements ?? [])]).filter((field) => field.name);
}

/** @param {string} name @param {string} value */
function filterText(name, value) {
  if (name !== 'from' && name !== 'to') return value;
  const date = new Date(value);
  const time = Number.isNaN(date.getTime()) ? value : dayAndTime(date);
  return `${name === 'from' ? 'from' : 'before'} ${time}`;
}

/** @param {string} iso @returns {string} the time in the form of a datetime-local field; empty if `iso` is not a time */
function toLocal(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

/** @param {string} local */
function fromLocal(local) {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

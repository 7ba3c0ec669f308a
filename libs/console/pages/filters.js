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
 * @returns {Record<string, string>}
 */
export function filterOf(params) {
  return Object.fromEntries(
    FILTERS.flatMap((name) => (params[name] ? [[name, params[name]]] : [])),
  );
}

/**
 * @param {object} props
 * @param {Record<string, string>} props.params
 * @param {readonly string[]} props.handlers
 * @param {readonly string[]} props.types event types of the list, as suggestions
 * @param {boolean} props.companies whether there are several companies
 * @param {(params: Record<string, string>) => void} props.onFilter
 */
export function Filters({ params, handlers, types, companies, onFilter }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  /** The text that each time field shows. The parameter in the address can be more precise than this text. */
  const times = useRef(/** @type {Record<string, string>} */ ({}));
  const key = JSON.stringify(params);
  useEffect(() => {
    for (const field of fieldsOf(form.current)) {
      const value = params[field.name] ?? '';
      field.value = field.type === 'datetime-local' ? toLocal(value) : value;
      times.current[field.name] = field.value;
    }
  }, [key, companies]);

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
  const names = [...new Set([...handlers, ...(params.handler ? [params.handler] : [])])];
  const used = FILTERS.filter((name) => params[name]);
  return html`<form ref=${form} class="filters" aria-label="Filter" onSubmit=${submit}>
    <details>
      <summary>
        Filter${used.length > 0 && ': '}
        <b>${used.map((name) => visible(filterText(name, params[name] ?? ''))).join(', ')}</b>
      </summary>
      <div class="fields">
        <${TextField}
          label="Reference, transaction, event id or amount"
          name="search"
          onChange=${apply}
        />
        <label
          >State
          <select name="state" onChange=${apply}>
            <option value="">any</option>
            ${[...STATES, 'unhandled', 'stale'].map((state) => html`<option value=${state}>${state}</option>`)}
          </select>
        </label>
        <label
          >Handler
          <select name="handler" onChange=${apply}>
            <option value="">any</option>
            ${names.map((name) => html`<option value=${name}>${name}</option>`)}
          </select>
        </label>
        <${TextField}
          label="Error, or an error that differs only in ids"
          name="error"
          onChange=${apply}
        />
        <label
          >Event type
          <input
            name="eventType"
            maxlength="255"
            list="types"
            autocomplete="off"
            spellcheck=${false}
            onChange=${apply}
          />
          <datalist id="types">${types.map((type) => html`<option value=${type} />`)}</datalist>
        </label>
        ${
          companies &&
          html`<label
            >Company <input name="company" autocomplete="off" spellcheck=${false} onChange=${apply}
          /></label>`
        }
        <label
          >Received from <input name="from" type="datetime-local" step="1" onChange=${apply}
        /></label>
        <label
          >Received before <input name="to" type="datetime-local" step="1" onChange=${apply}
        /></label>
        <label
          >Order
          <select name="order" onChange=${apply}>
            <option value="">newest first</option>
            <option value="oldest">oldest first</option>
          </select>
        </label>
        <button type="button" class="clear" onClick=${() => onFilter({})}>Clear</button>
      </div>
    </details>
  </form>`;
}

/** @param {{ label: string, name: string, onChange: () => void }} props */
function TextField({ label, name, onChange }) {
  return html`<label
    >${label}
    <input
      name=${name}
      maxlength="1000"
      autocomplete="off"
      spellcheck=${false}
      onChange=${onChange}
    />
  </label>`;
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

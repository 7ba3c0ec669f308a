import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import { Problem } from './components.js';
import { TRIGGER, readField, showField } from './fault-fields.js';
import { call, useAction } from './api.js';

/**
 * The switch of one fault, with its fields. If the fault is on, a change takes effect at once; otherwise, it takes effect
 * when the user switches the fault on.
 *
 * @param {{ companyId: string, target: string, fault: import('./faults.js').Fault,
 *   value: any, onChanged: () => Promise<void> }} props `value`: the current fault; undefined if it is off
 */
export function FaultSwitch({ companyId, target, fault, value, onChanged }) {
  const [typed, setTyped] = useState(/** @type {Record<string, string>} */ ({}));
  const { busy, problem, run } = useAction();
  // The page sends one request at a time, because concurrent requests can arrive in another order.
  const last = useRef(Promise.resolve(true));
  const inTurn = (work) => (last.current = last.current.then(() => run(work)));
  // The requested state of the switch, until the emulator has responded.
  const wanted = useRef(/** @type {boolean | undefined} */ (undefined));
  const { only } = fault;
  const isList = typeof only === 'object';
  /** @type {import('./fault-fields.js').Field[]} */
  const fields = [];
  if (isList) fields.push({ ...only, name: '' });
  else if (!only) {
    const own = Object.entries(fault.fields ?? {}).map(([name, field]) => ({ ...field, name }));
    fields.push(...own, ...TRIGGER);
  }
  const on = value !== undefined;
  const path = `companies/${encodeURIComponent(companyId)}/faults/${target}/${fault.name}`;
  const id = `${target}-${fault.name}`;

  const textOf = (field) => {
    if (typed[field.name] !== undefined) return typed[field.name];
    if (!on) return field.value ?? '';
    return showField(field, isList ? value : value[field.name]);
  };
  const put = () =>
    inTurn(async () => {
      const read = fields.map((field) => [field.name, readField(field, textOf(field))]);
      const body = only === true || (isList ? read[0]?.[1] : Object.fromEntries(read));
      const sent = { ...typed };
      await call('PUT', path, body);
      // The page waits for the new plan, because `value` is the value before the change until the new plan arrives.
      await onChanged();
      // Text that was typed in the meantime has not been sent yet.
      setTyped((now) =>
        Object.fromEntries(Object.entries(now).filter(([name, text]) => text !== sent[name])),
      );
    });
  const flip = async (event) => {
    wanted.current = event.currentTarget.checked;
    await (wanted.current
      ? put()
      : inTurn(async () => {
          await call('DELETE', path);
          await onChanged();
        }));
    wanted.current = undefined;
  };
  /** Sends the fields if the fault is on or is being switched on. */
  const send = () => (wanted.current ?? on) && put();

  return html`<li class=${on ? 'fault on' : 'fault'}>
    <label class="switch">
      <input
        type="checkbox"
        role="switch"
        checked=${on}
        disabled=${busy}
        aria-describedby=${`${id}-description`}
        onChange=${flip}
      />
      <span>${fault.label}</span>
      ${on && html`<b class="state-word">${isUsedUp(value) ? 'used up' : 'on'}</b>`}
    </label>
    <p id=${`${id}-description`} class="quiet">${fault.description}</p>
    <details hidden=${fields.length === 0}>
      <summary>Settings<span class="visually-hidden"> of ${fault.label}</span></summary>
      <div class="fields">
        ${fields.map(
          (field) =>
            html`<label key=${field.name}>
              ${field.label}
              ${
                field.options
                  ? html`<select
                      name=${field.name}
                      value=${textOf(field)}
                      onChange=${(event) => choose(field, event.currentTarget.value)}
                    >
                      ${field.options.map((each) => html`<option key=${each}>${each}</option>`)}
                    </select>`
                  : html`<input
                      name=${field.name || 'waits'}
                      value=${textOf(field)}
                      placeholder=${field.placeholder}
                      autocomplete="off"
                      onInput=${(event) => type(field, event.currentTarget.value)}
                      onChange=${send}
                    />`
              }
            </label>`,
        )}
      </div>
    </details>
    <${Problem} text=${problem} />
  </li>`;

  function type(field, text) {
    typed[field.name] = text;
    setTyped({ ...typed });
  }

  function choose(field, text) {
    type(field, text);
    void send();
  }
}

/** Whether a fault with a limited number of uses has no use left. */
export function isUsedUp(value) {
  return value?.next === 0 && !(value.probability > 0);
}

import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import { Problem } from './connection.js';
import { TRIGGER, readField, showField } from './fault.catalogue.js';
import { call, useAction } from './server.js';

/**
 * The switch of one fault, with its numbers. What is typed takes effect at once where the fault is on,
 * and with the switch where it is off.
 *
 * @param {{ companyId: string, station: string, fault: import('./fault.catalogue.js').Fault,
 *   value: any, onChanged: () => void }} props `value`: the fault as it stands; undefined: off
 */
export function FaultSwitch({ companyId, station, fault, value, onChanged }) {
  const [typed, setTyped] = useState(/** @type {Record<string, string>} */ ({}));
  const { busy, problem, run } = useAction();
  // One request after the other: of two at once, the second might arrive first.
  const last = useRef(Promise.resolve(true));
  const inTurn = (work) => (last.current = last.current.then(() => run(work)));
  // What the switch was set to, until the emulator has answered.
  const wanted = useRef(/** @type {boolean | undefined} */ (undefined));
  const isList = Array.isArray(value) || fault.fields[0]?.kind === 'list';
  const fields = isList ? fault.fields : [...fault.fields, ...TRIGGER];
  const on = value !== undefined;
  const path = `companies/${encodeURIComponent(companyId)}/faults/${station}/${fault.name}`;
  const id = `${station}-${fault.name}`;

  const textOf = (field) => {
    if (typed[field.name] !== undefined) return typed[field.name];
    if (!on) return field.value ?? '';
    return showField(field, isList ? value : value[field.name]);
  };
  const put = () =>
    inTurn(async () => {
      const read = fields.map((field) => [field.name, readField(field, textOf(field))]);
      const body = isList ? read[0]?.[1] : Object.fromEntries(read);
      const sent = { ...typed };
      await call('PUT', path, body);
      // What was typed meanwhile is still to be sent.
      setTyped((now) =>
        Object.fromEntries(Object.entries(now).filter(([name, text]) => text !== sent[name])),
      );
      onChanged();
    });
  const flip = async (event) => {
    wanted.current = event.currentTarget.checked;
    await (wanted.current
      ? put()
      : inTurn(async () => {
          await call('DELETE', path);
          onChanged();
        }));
    wanted.current = undefined;
  };
  /** Sends what was chosen or typed if the fault is on, or is being switched on. */
  const send = () => (wanted.current ?? on) && put();

  return html`<li class=${on ? 'fault on' : 'fault'}>
    <label class="switch">
      <input
        type="checkbox"
        role="switch"
        checked=${on}
        disabled=${busy}
        aria-describedby=${`${id}-what`}
        onChange=${flip}
      />
      <span>${fault.label}</span>
      ${on && html`<b class="state-word">${isUsedUp(value) ? 'used up' : 'on'}</b>`}
    </label>
    <p id=${`${id}-what`} class="quiet">${fault.what}</p>
    <details>
      <summary>Numbers<span class="unseen"> of ${fault.label}</span></summary>
      <div class="fields">
        ${fields.map(
          (field) =>
            html`<label key=${field.name}>
              ${field.label}
              ${
                field.kind === 'choice'
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

/** Struck as often as it was to, and strikes no more. */
export function isUsedUp(value) {
  return value?.next === 0 && !(value.probability > 0);
}

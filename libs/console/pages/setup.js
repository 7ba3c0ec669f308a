import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, post } from './api.js';
import { Badge, Foreign, counted } from './format.js';
import { ActionButton } from './permission.js';
import { setupLink } from './route.js';

/** @typedef {import('./api.js').SetupCheck} SetupCheck */

/**
 * A check on the page. `lines` is missing while the check waits or runs.
 *
 * @typedef {{ check: SetupCheck['name'], company?: string, running?: boolean, lines?: readonly Line[] }} Step
 * @typedef {Pick<SetupCheck, 'state' | 'message' | 'fix'> & { company?: string | null }} Line
 */

/** @type {Record<SetupCheck['name'], string>} */
const TITLES = {
  settings: 'Settings',
  token: 'Access token',
  inbox: 'Inbox',
  handlers: 'Handlers',
  webhook: 'Test webhook',
};

/** The colors of the states of deliveries. */
const COLORS = { ok: 'done', warning: 'pending', failed: 'dead', skipped: 'skipped' };

/**
 * The checks of the setup. Each check is a request, so that the list ticks off while the checks run.
 *
 * @param {{ company: string }} props the company in the address; empty for every company in the options
 */
export function Setup({ company }) {
  const [steps, setSteps] = useState(/** @type {readonly Step[]} */ ([]));
  const [round, setRound] = useState(0);

  /** @param {Step} step @param {Partial<Step>} change */
  const update = (step, change) =>
    setSteps((all) => all.map((one) => (sameStep(one, step) ? { ...one, ...change } : one)));
  /** @param {Step} step */
  const run = async (step) => {
    update(step, { running: true });
    const lines = await linesOf(step);
    update(step, { running: false, lines });
    return lines;
  };

  useEffect(() => {
    let left = false;
    const checkAll = async () => {
      /** @type {Step} */
      const settings = { check: 'settings', ...(company && { company }) };
      setSteps([settings, { check: 'inbox' }, { check: 'handlers' }]);
      const found = await run(settings);
      if (left) return;
      const companies = found.flatMap((line) => line.company ?? []);
      const tokens = companies.map((id) => stepOf('token', id));
      const webhooks = companies.map((id) => stepOf('webhook', id));
      setSteps(([first, ...others]) => [
        ...(first ? [first] : []),
        ...tokens,
        ...others,
        ...webhooks,
      ]);
      for (const step of [...tokens, stepOf('inbox'), stepOf('handlers')]) {
        if (!left) await run(step);
      }
    };
    void checkAll();
    return () => {
      left = true;
    };
  }, [round]);

  const automatic = steps.filter(({ check }) => check !== 'webhook');
  const busy = automatic.some(({ lines }) => lines === undefined);
  const unknown = steps[0]?.lines?.some(({ state }) => state === 'skipped');
  return html`
    <h1 tabindex="-1">Setup</h1>
    <p class="quiet note">
      Checks the settings, an access token, the inbox and the handlers of the process that responds.
      The test webhook is sent only on request.
    </p>
    ${(company || unknown) && html`<${CompanyForm} company=${company} />`}
    <p role="status">${busy ? 'Checking …' : summaryOf(automatic)}</p>
    <ol class="checks" aria-busy=${busy}>
      ${steps.map(
        (step) =>
          html`<${Check}
            key=${`${step.check} ${step.company ?? ''}`}
            step=${step}
            onSend=${() => void run(step)}
          />`,
      )}
    </ol>
    <button type="button" disabled=${busy} onClick=${() => setRound(round + 1)}>Check again</button>
  `;
}

/** @param {SetupCheck['name']} check @param {string} [company] @returns {Step} */
function stepOf(check, company) {
  return { check, ...(company !== undefined && { company }) };
}

/** @param {Step} one @param {Step} other */
function sameStep(one, other) {
  return one.check === other.check && one.company === other.company;
}

/** @param {Step} step @returns {Promise<readonly Line[]>} */
export async function linesOf({ check, company }) {
  try {
    const { checks } = await post('setup', { check, ...(company !== undefined && { company }) });
    return checks;
  } catch (error) {
    const message = error instanceof ApiError ? error.message : String(error);
    return [{ state: 'failed', message, fix: 'Check again when the server is reachable.' }];
  }
}

/** @param {readonly Step[]} steps */
function summaryOf(steps) {
  const lines = steps.flatMap((step) => step.lines ?? []);
  /** @param {Line['state']} state */
  const count = (state) => lines.filter((line) => line.state === state).length;
  const [failed, warnings] = [count('failed'), count('warning')];
  if (failed + warnings === 0) return 'No fault was found.';
  return `${counted(failed, 'failure')} and ${counted(warnings, 'warning')} found.`;
}

/** @param {{ company: string }} props */
function CompanyForm({ company }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    location.hash = setupLink(field.current?.value.trim() ?? '');
  };
  return html`<form class="buttons" onSubmit=${submit}>
    <label for="company">Company</label>
    <input
      ref=${field}
      id="company"
      name="company"
      maxlength="100"
      autocomplete="off"
      defaultValue=${company}
    />
    <button type="submit">Check</button>
  </form>`;
}

/** The results of a check. @param {{ lines: readonly Line[], company?: string }} props */
export function Lines({ lines, company }) {
  return lines.map(
    ({ state, message, fix, company: one }) =>
      html`<p>
        <${Badge} state=${COLORS[state]}>${state}<//>${' '}
        <${Foreign} text=${company === undefined && one ? `${one}: ${message}` : message} />
        ${fix && html`<br /><strong>Fix:</strong> <${Foreign} text=${fix} />`}
      </p>`,
  );
}

/** @param {{ step: Step, onSend: () => void }} props */
function Check({ step: { check, company, running, lines }, onSend }) {
  const title = company === undefined ? TITLES[check] : `${TITLES[check]} of ${company}`;
  return html`<li>
    <h2><bdi>${title}</bdi></h2>
    ${running && html`<p class="quiet">Checking …</p>`}
    ${!running && html`<${Lines} lines=${lines ?? []} company=${company} />`}
    ${
      check === 'webhook'
        ? html`<${ActionButton}
            disabled=${running}
            aria-label=${`Send test webhook of ${company}`}
            onClick=${onSend}
          >
            Send test webhook
          <//>`
        : !running && !lines && html`<p class="quiet">Waits.</p>`
    }
  </li>`;
}

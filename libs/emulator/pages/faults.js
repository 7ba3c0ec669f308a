import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { TabLink } from './address.js';
import { Problem } from './components.js';
import { FaultSwitch, isUsedUp } from './fault-switch.js';
import { call, useAction } from './api.js';

/**
 * @typedef {import('../src/faults/fault-plan.js').FaultField} FaultField
 * @typedef {import('../src/faults/fault-plan.js').FaultDefinition & { name: string }} Fault
 * @typedef {{ target: string, title: string, description: string, faults: Fault[] }} FaultTarget
 */

/** All faults of the emulator. @type {FaultTarget[]} */
const FAULT_TARGETS = Object.entries(await call('GET', 'faults')).map(([target, group]) => ({
  ...group,
  target,
  faults: Object.entries(group.faults).map(([name, fault]) => ({ ...fault, name })),
}));

/**
 * Returns the faults of a company's plan that are on.
 *
 * @param {Record<string, Record<string, any>>} plan
 */
function enabledFaults(plan) {
  return FAULT_TARGETS.flatMap(({ target, title, faults }) =>
    faults
      .filter(({ name }) => plan[target]?.[name] !== undefined)
      .map((fault) => ({ target, title, fault, value: plan[target]?.[fault.name] })),
  );
}

/**
 * Shows at the top of every tab which faults are on for a company. If `brief` is set, shows only the number of these
 * faults and a link to the tab Faults. Otherwise, shows a button for each of these faults, which switches the fault
 * off.
 */
export function FaultsOn({ company, onChanged, go, brief }) {
  const { busy, problem, run } = useAction();
  const on = enabledFaults(company.faults);
  const path = `companies/${encodeURIComponent(company.companyId)}/faults`;
  const change = (method, faultPath, body) =>
    run(async () => {
      await call(method, faultPath, body);
      onChanged();
    });
  if (brief && on.length === 0 && problem === undefined) return null;
  return html`<section class="faults-on" aria-label="Faults that are on">
    ${
      on.length === 0
        ? !brief &&
          html`<p class="quiet">No fault is on for company <b>${company.companyId}</b>.</p>`
        : html`<p class="state bad">
              ${`${on.length} ${on.length === 1 ? 'fault' : 'faults'} on for company ${company.companyId}`}
            </p>
            ${
              brief
                ? html`<${TabLink} to=${{ tab: 'faults', company: company.companyId }} go=${go}>
                    Show the faults
                  <//>`
                : html`<${Chips} ...${{ on, busy, path, change }} />`
            }
            <button class="danger" disabled=${busy} onClick=${() => change('PUT', path, {})}>
              All faults off
            </button>`
    }
    <${Problem} text=${problem} />
  </section>`;
}

function Chips({ on, busy, path, change }) {
  return html` <ul class="chips">
    ${on.map(
      ({ target, title, fault, value }) =>
        html`<li key=${`${target}/${fault.name}`}>
          <button
            class="chip"
            disabled=${busy}
            onClick=${() => change('DELETE', `${path}/${target}/${fault.name}`)}
          >
            ${title}: ${fault.label}${isUsedUp(value) ? ' (used up)' : ''}
            <span class="quiet"> · switch off</span>
          </button>
        </li>`,
    )}
  </ul>`;
}

/** The switches of all faults. On a narrow screen, only the first group is open at first. */
export function Faults({ company, onChanged }) {
  const [wide] = useState(() => matchMedia('(min-width: 62rem)').matches);
  const { companyId } = company;
  return html`<section id="faults" aria-labelledby="faults-title">
    <h2 id="faults-title">Faults of company ${companyId}</h2>
    <p class="quiet">
      A fault makes the emulator behave incorrectly, so that you can test the merchant’s
      application. The settings of a fault determine whether it applies always, a number of times or
      at random. The same seed gives the same random faults.
    </p>
    <div class="fault-targets">
      ${FAULT_TARGETS.map(
        (group, index) =>
          html`<${FaultGroup}
            key=${group.target}
            ...${{ group, companyId, onChanged }}
            plan=${company.faults[group.target] ?? {}}
            openFirst=${wide || index === 0}
          />`,
      )}
    </div>
  </section>`;
}

function FaultGroup({ group, plan, companyId, openFirst, onChanged }) {
  const { target, title, description, faults } = group;
  const on = Object.keys(plan).length;
  const [open] = useState(openFirst);
  return html`<section aria-label=${`Faults: ${title}`}>
    <details class="fault-group" open=${open}>
      <summary>
        <h3>${title}</h3>
        ${on > 0 && html`<b class="state-word">${on} on</b>`}
      </summary>
      <p class="quiet">${description}</p>
      <ul class="faults">
        ${faults.map(
          (fault) =>
            html`<${FaultSwitch}
              key=${`${companyId}/${target}/${fault.name}`}
              companyId=${companyId}
              target=${target}
              fault=${fault}
              value=${plan[fault.name]}
              onChanged=${onChanged}
            />`,
        )}
      </ul>
    </details>
  </section>`;
}

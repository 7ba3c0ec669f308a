import { html } from 'htm/preact';
import { Problem } from './components.js';
import { FAULT_TARGETS } from './fault-catalogue.js';
import { FaultSwitch, isUsedUp } from './fault-switch.js';
import { call, useAction } from './api.js';

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

/** The faults of a company that are on, at the top of the page, each with a button that switches it off. */
export function FaultsOn({ company, onChanged }) {
  const { busy, problem, run } = useAction();
  const on = enabledFaults(company.faults);
  const path = `companies/${encodeURIComponent(company.companyId)}/faults`;
  const change = (method, faultPath, body) =>
    run(async () => {
      await call(method, faultPath, body);
      onChanged();
    });
  return html`<section class="faults-on" aria-label="Faults that are on">
    ${
      on.length === 0
        ? html`<p class="quiet">No fault is on for <b>${company.companyId}</b>.</p>`
        : html`<p class="state bad">
              ${on.length} ${on.length === 1 ? 'fault' : 'faults'} on for ${company.companyId}
            </p>
            <ul class="chips">
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
            </ul>
            <button class="danger" disabled=${busy} onClick=${() => change('PUT', path, {})}>
              All faults off
            </button>`
    }
    <${Problem} text=${problem} />
  </section>`;
}

/** The switches of all faults. */
export function Faults({ company, onChanged }) {
  return html`<section id="faults" class="whole" aria-labelledby="faults-title">
    <h2 id="faults-title">Faults of ${company.companyId}</h2>
    <p class="quiet">
      A fault applies always, a number of times, or at random. Random faults repeat with the
      emulator's seed.
    </p>
    <div class="fault-targets">
      ${FAULT_TARGETS.map(
        ({ target, title, description, faults }) =>
          html`<section key=${target} aria-label=${`Faults: ${title}`}>
            <h3>${title}</h3>
            <p class="quiet">${description}</p>
            <ul class="faults">
              ${faults.map(
                (fault) =>
                  html`<${FaultSwitch}
                    key=${`${company.companyId}/${target}/${fault.name}`}
                    companyId=${company.companyId}
                    target=${target}
                    fault=${fault}
                    value=${company.faults[target]?.[fault.name]}
                    onChanged=${onChanged}
                  />`,
              )}
            </ul>
          </section>`,
      )}
    </div>
  </section>`;
}

import { html } from 'htm/preact';
import { Problem } from './connection.js';
import { STATIONS } from './fault.catalogue.js';
import { FaultSwitch, isUsedUp } from './fault.switch.js';
import { call, useAction } from './server.js';

/**
 * What is on, of a company's plan.
 *
 * @param {Record<string, Record<string, any>>} plan
 */
function switchedOn(plan) {
  return STATIONS.flatMap(({ station, title, faults }) =>
    faults
      .filter(({ name }) => plan[station]?.[name] !== undefined)
      .map((fault) => ({ station, title, fault, value: plan[station]?.[fault.name] })),
  );
}

/** What is on for a company, to be seen at the top of the page, each with a button that ends it. */
export function FaultsOn({ company, onChanged }) {
  const { busy, problem, run } = useAction();
  const on = switchedOn(company.faults);
  const path = `companies/${encodeURIComponent(company.companyId)}/faults`;
  const change = (method, where, body) =>
    run(async () => {
      await call(method, where, body);
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
                ({ station, title, fault, value }) =>
                  html`<li key=${`${station}/${fault.name}`}>
                    <button
                      class="chip"
                      disabled=${busy}
                      onClick=${() => change('DELETE', `${path}/${station}/${fault.name}`)}
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

/** A switch for every fault there is. */
export function Faults({ company, onChanged }) {
  return html`<section id="faults" class="whole" aria-labelledby="faults-title">
    <h2 id="faults-title">Faults of ${company.companyId}</h2>
    <p class="quiet">
      A fault strikes always; or only so many times; or by chance, drawn from the emulator's seed.
    </p>
    <div class="stations">
      ${STATIONS.map(
        ({ station, title, what, faults }) =>
          html`<section key=${station} aria-label=${`Faults: ${title}`}>
            <h3>${title}</h3>
            <p class="quiet">${what}</p>
            <ul class="faults">
              ${faults.map(
                (fault) =>
                  html`<${FaultSwitch}
                    key=${`${company.companyId}/${station}/${fault.name}`}
                    companyId=${company.companyId}
                    station=${station}
                    fault=${fault}
                    value=${company.faults[station]?.[fault.name]}
                    onChanged=${onChanged}
                  />`,
              )}
            </ul>
          </section>`,
      )}
    </div>
  </section>`;
}

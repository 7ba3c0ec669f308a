import { html, render } from 'htm/preact';
import { TABS, useAddress } from './address.js';
import { CompanySelect, ConnectionStatus, PageHeader } from './components.js';
import { Credentials } from './credentials.js';
import { Deliveries } from './delivery-log.js';
import { Faults, FaultsOn } from './faults.js';
import { ClockNotice } from './format.js';
import { usePolling } from './api.js';
import { Payments } from './payments.js';

/** The page with the tabs: payments, the delivery log, faults and credentials. */
function EmulatorPage() {
  const { data: overview, error, refresh } = usePolling('overview');
  const { address, go, replace } = useAddress();
  const { tab } = address;
  const company =
    overview?.companies.find(({ companyId }) => companyId === address.company) ??
    overview?.companies[0];
  return html`<div class="wide-page">
    <${PageHeader} current=${tab} company=${address.company} go=${go} overview=${overview} />
    <${ConnectionStatus} error=${error} />
    ${overview && html`<${ClockNotice} overview=${overview} />`}
    <main aria-label=${TABS[tab]}>
      ${
        company === undefined
          ? html`<p class="quiet">Loading…</p>`
          : html`<${Toolbar}
                ...${{ overview, company, tab, go, refresh }}
                onChoose=${(chosen) => replace({ company: chosen })}
              />
              <${Tab}
                key=${tab === 'deliveries' ? tab : `${tab} of ${company.companyId}`}
                ...${{ overview, company, address, go, replace, refresh }}
              />`
      }
    </main>
  </div>`;
}

/**
 * The selection field for the company, and the faults that are on for this company. The delivery log has its own
 * selection field, with which the user can also select all companies.
 */
function Toolbar({ overview, company, tab, go, refresh, onChoose }) {
  const { companies, companyCount } = overview;
  return html`<div class="bar">
      ${
        tab !== 'deliveries' &&
        companies.length > 1 &&
        html`<${CompanySelect}
          companies=${companies}
          value=${company.companyId}
          onChoose=${onChoose}
        />`
      }
      <${FaultsOn} ...${{ company, go }} brief=${tab !== 'faults'} onChanged=${refresh} />
    </div>
    ${
      companyCount > companies.length &&
      html`<p class="quiet">This page lists ${companies.length} of ${companyCount} companies.</p>`
    }`;
}

function Tab({ overview, company, address, go, replace, refresh }) {
  switch (address.tab) {
    case 'deliveries':
      return html`<${Deliveries}
        ...${{ overview, company, address, replace }}
        onSent=${refresh}
      />`;
    case 'faults':
      return html`<${Faults} company=${company} onChanged=${refresh} />`;
    case 'credentials':
      return html`<${Credentials} company=${company} hosts=${overview.hosts} />`;
    default:
      return html`<${Payments} ...${{ company, go }} currency=${overview.currency} />`;
  }
}

const page = /** @type {HTMLElement} */ (document.getElementById('page'));
page.replaceChildren();
render(html`<${EmulatorPage} />`, page);

import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { CompanySelect, ConnectionStatus, PageHeader } from './components.js';
import { Credentials } from './credentials.js';
import { Deliveries } from './delivery-log.js';
import { Faults, FaultsOn } from './faults.js';
import { usePolling } from './api.js';
import { Actions, Transactions } from './transactions.js';

const query = new URLSearchParams(location.search);

/** The page with the delivery log, the transactions and the faults. */
function DeliveriesPage() {
  const { data: overview, error, refresh } = usePolling('overview');
  const [chosen, setChosen] = useState(query.get('company') ?? '');
  const [filter, setFilter] = useState({
    company: query.get('company') ?? '',
    state: query.get('state') ?? '',
    search: query.get('search') ?? '',
  });
  useEffect(() => {
    const given = Object.entries(filter).filter(([, value]) => value !== '');
    const search = new URLSearchParams(given).toString();
    history.replaceState(null, '', search ? `?${search}` : location.pathname);
  }, [filter]);
  const onFilter = (change) => setFilter((before) => ({ ...before, ...change }));
  const onSearch = (search) => {
    onFilter({ company: '', state: '', search });
    document.getElementById('deliveries')?.scrollIntoView();
  };
  const company =
    overview?.companies.find(({ companyId }) => companyId === chosen) ?? overview?.companies[0];
  return html`<div class="wide-page">
    <${PageHeader} title="Deliveries and faults" current="/emulator">
      ${overview && html`<span class="quiet">${overview.environment} host</span>`}
    <//>
    <${ConnectionStatus} error=${error} />
    ${
      company === undefined
        ? html`<p class="quiet">Loading…</p>`
        : html`<div class="bar">
              <${CompanySelect}
                label="Company for actions and faults"
                companies=${overview.companies}
                value=${company.companyId}
                onChoose=${setChosen}
              />
              <${FaultsOn} company=${company} onChanged=${refresh} />
            </div>
            ${
              overview.companyCount > overview.companies.length &&
              html`<p class="quiet">
                This page lists ${overview.companies.length} of ${overview.companyCount} companies.
              </p>`
            }
            <nav class="jump" aria-label="On this page">
              <a href="#deliveries">Deliveries</a> <a href="#transactions">Transactions</a>
              <a href="#faults">Faults</a>
            </nav>
            <main class="columns">
              <${Deliveries} overview=${overview} filter=${filter} onFilter=${onFilter} />
              <div key=${company.companyId}>
                <${Actions} company=${company} onChanged=${refresh} />
                <${Transactions} company=${company} onSearch=${onSearch} />

                <${Credentials} company=${company} hosts=${overview.hosts} />
              </div>
              <${Faults}
                key=${`faults of ${company.companyId}`}
                company=${company}
                onChanged=${refresh}
              />
            </main>`
    }
  </div>`;
}

const page = /** @type {HTMLElement} */ (document.getElementById('page'));
page.replaceChildren();
render(html`<${DeliveriesPage} />`, page);

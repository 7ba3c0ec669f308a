import { html, render } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { CompanyChoice, Connection, PageHead } from './connection.js';
import { Credentials } from './credentials.js';
import { Deliveries } from './deliveries.js';
import { Faults, FaultsOn } from './faults.js';
import { useLive } from './server.js';
import { Actions, Transactions } from './transactions.js';

const asked = new URLSearchParams(location.search);

/** The page of the delivery log: what was delivered, and everything that makes it go wrong. */
function Control() {
  const { data: overview, trouble, refresh } = useLive('overview');
  const [chosen, setChosen] = useState(asked.get('company') ?? '');
  const [filter, setFilter] = useState({
    company: asked.get('company') ?? '',
    state: asked.get('state') ?? '',
    search: asked.get('search') ?? '',
  });
  useEffect(() => {
    const given = Object.entries(filter).filter(([, value]) => value !== '');
    const query = new URLSearchParams(given).toString();
    history.replaceState(null, '', query ? `?${query}` : location.pathname);
  }, [filter]);
  const onFilter = (change) => setFilter((before) => ({ ...before, ...change }));
  const onSearch = (search) => {
    onFilter({ company: '', state: '', search });
    document.getElementById('deliveries')?.scrollIntoView();
  };
  const company =
    overview?.companies.find(({ companyId }) => companyId === chosen) ?? overview?.companies[0];
  return html`<div class="wide-page">
    <${PageHead} title="Deliveries and faults" here="/emulator">
      ${overview && html`<span class="quiet">${overview.environment} host</span>`}
    <//>
    <${Connection} trouble=${trouble} />
    ${
      company === undefined
        ? html`<p class="quiet">Loading…</p>`
        : html`<div class="bar">
              <${CompanyChoice}
                label="Company to act for"
                companies=${overview.companies}
                value=${company.companyId}
                onChoose=${setChosen}
              />
              <${FaultsOn} company=${company} onChanged=${refresh} />
            </div>
            ${
              overview.companyCount > overview.companies.length &&
              html`<p class="quiet">
                ${overview.companies.length} of ${overview.companyCount} companies are offered here.
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
render(html`<${Control} />`, page);

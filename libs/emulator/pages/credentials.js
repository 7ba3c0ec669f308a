import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { Problem } from './components.js';
import { call, useAction } from './api.js';

/** A company's credentials. They are requested only when the user shows them. */
export function Credentials({ company, hosts }) {
  const [shown, setShown] = useState(/** @type {any} */ (undefined));
  const { busy, problem, run } = useAction();
  const show = () =>
    run(async () =>
      setShown(await call('GET', `companies/${encodeURIComponent(company.companyId)}`)),
    );
  return html`<section aria-labelledby="credentials-title">
    <h2 id="credentials-title">Credentials of ${company.companyId}</h2>
    ${
      shown === undefined
        ? html`<p>
            <button disabled=${busy} onClick=${show}>Show the credentials</button>${' '}
            <span class="quiet">client secrets and webhook secret</span>
          </p>`
        : html`<p><button onClick=${() => setShown(undefined)}>Hide the credentials</button></p>
            <dl class="facts">
              ${[
                ['Sandbox', hosts.sandbox],
                ['Client id', shown.clientId],
                ['Client secret', shown.clientSecret],
                ['Webhook secret', shown.webhookSecret],
                ['Production', hosts.production],
                ['Client id (production)', shown.production.clientId],
                ['Client secret (production)', shown.production.clientSecret],
              ].map(
                ([name, value]) =>
                  html`<div key=${name}>
                    <dt>${name}</dt>
                    <dd><code>${value}</code></dd>
                  </div>`,
              )}
            </dl>`
    }
    <${Problem} text=${problem} />
  </section>`;
}

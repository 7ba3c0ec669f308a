import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { Problem } from './components.js';
import { call, useAction } from './api.js';

/**
 * A company's credentials. The page requests the credentials only after the user has clicked the button that shows
 * them.
 */
export function Credentials({ company, hosts }) {
  const [shown, setShown] = useState(/** @type {any} */ (undefined));
  const { busy, problem, run } = useAction();
  const { companyId, webhook } = company;
  const show = () =>
    run(async () => setShown(await call('GET', `companies/${encodeURIComponent(companyId)}`)));
  const groups = [
    {
      title: 'Sandbox',
      facts: [
        ['Base URL', hosts.sandbox],
        ['Client id', shown?.clientId],
        ['Client secret', shown?.clientSecret],
      ],
    },
    {
      title: 'Production',
      facts: [
        ['Base URL (production)', hosts.production],
        ['Client id (production)', shown?.production.clientId],
        ['Client secret (production)', shown?.production.clientSecret],
      ],
    },
    {
      title: 'Webhook',
      facts: [
        ['Webhook URL', webhook.url ?? 'none'],
        ['Webhook secret', shown?.webhookSecret],
      ],
    },
  ];
  return html`<section aria-labelledby="credentials-title">
    <div class="title-row">
      <h2 id="credentials-title">Credentials of company ${companyId}</h2>
      ${
        shown === undefined
          ? html`<button disabled=${busy} onClick=${show}>Show the credentials</button>`
          : html`<button onClick=${() => setShown(undefined)}>Hide the credentials</button>`
      }
    </div>
    <p class="quiet">
      The settings of the merchant’s application. They are valid only for this emulator.
    </p>
    <${Problem} text=${problem} />
    <div class="credentials">
      ${groups.map(
        ({ title, facts }) =>
          html`<div key=${title}>
            <h3>${title}</h3>
            <dl class="facts">
              ${facts.map(
                ([name, value]) => html`<${Credential} key=${name} name=${name} value=${value} />`,
              )}
            </dl>
          </div>`,
      )}
    </div>
  </section>`;
}

/**
 * One value, with a button that copies the value. Browsers permit access to the clipboard only for https and for pages
 * of this machine.
 */
function Credential({ name, value }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(value).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return html`<div>
    <dt>${name}</dt>
    <dd>
      ${value === undefined ? html`<span class="quiet">hidden</span>` : html`<code>${value}</code>`}
      ${
        value !== undefined &&
        navigator.clipboard &&
        html`<button class="copy" onClick=${copy}>
          ${copied ? 'Copied' : 'Copy'}<span class="visually-hidden"> ${name}</span>
        </button>`
      }
    </dd>
  </div>`;
}

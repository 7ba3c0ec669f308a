import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { CardTable } from './card-table.js';
import { Foreign, Time, ago, counted, duration, number, visible } from './format.js';
import { ActionButton } from './permission.js';
import { setupLink } from './route.js';
import { Lines, linesOf } from './setup.js';

/** @typedef {import('./api.js').Arrivals} Arrivals */
/** @typedef {Arrivals['secrets'][number]} Secrets */

/** From this number of rejected requests in a row, the tile is red instead of amber. */
const MANY = 3;
/** A previous secret that was not used for this time can be removed, in milliseconds. */
const UNUSED_MS = 24 * 3_600_000;
/** With more companies, the table of secrets is folded, and the tile names only this number of companies. */
const FEW = 5;

/**
 * Whether webhook requests arrive, in all processes together.
 *
 * @param {{ arrivals: Arrivals, now: string }} props
 */
export function WebhookRequests({ arrivals, now }) {
  const { lastRequestAt, lastAcceptedAt, usualGapMs, rejections, secrets } = arrivals;
  // With one company, the verdict and the table of rejections show everything.
  const companies = new Set([...secrets, ...arrivals.rejectedCompanies].map((one) => one.company));
  const rejected = companies.size > 1 ? arrivals.rejectedCompanies.slice(0, FEW) : [];
  const { text, tone } = verdictOf(arrivals);
  const [current] = arrivals.minutes.slice(-1);
  return html`<section class=${`arrivals ${tone}`} aria-labelledby="arrivals">
    <div class="facts">
      <h2 id="arrivals">Webhook requests</h2>
      <strong class="verdict">${text}</strong>
      ${rejected.map(
        ({ company, count, code, message }) =>
          html`<p key=${company}>
            <b><${Foreign} text=${company} /></b>: ${counted(count, 'request')} rejected
            (<code>${code}</code>). <${Foreign} text=${message ?? ''} />
          </p>`,
      )}
      <dl class="newest">
        <dt>last request</dt>
        <dd>${timeOrNone(lastRequestAt)}</dd>
        <dt>last accepted</dt>
        <dd>${timeOrNone(lastAcceptedAt)}</dd>
        <dt>usual gap</dt>
        <dd>${usualGapMs === null ? 'not known yet' : `at most ${duration(usualGapMs)}`}</dd>
        <dt>last hour</dt>
        <dd>${totalsOf(arrivals)}</dd>
        <dt>this minute</dt>
        <dd>
          ${current && `${number(current.accepted)} accepted, ${number(current.rejected)} rejected`}
        </dd>
      </dl>
    </div>
    <${Bars} minutes=${arrivals.minutes} />
    ${rejections.length > 0 && html`<${Rejections} rejections=${rejections} />`}
    ${
      secrets.length === 0
        ? html`<p class="quiet note">
            No company is known yet. <a href="#/setup">Send a test webhook on the page Setup</a>
          </p>`
        : html`<details class="secrets" open=${secrets.length <= FEW}>
            <summary>
              Webhook secrets and test webhooks of ${counted(secrets.length, 'company')}
            </summary>
            <${SecretsTable} secrets=${secrets} now=${now} />
          </details>`
    }
  </section>`;
}

/**
 * @param {Arrivals} arrivals
 * @returns {{ text: string, tone: '' | 'warn' | 'bad' }}
 */
function verdictOf({
  lastRequestAt,
  lastAcceptedAt,
  rejectedInARow,
  rejectedCompanies,
  late,
  usualGapMs,
}) {
  if (rejectedInARow > 0) {
    const all = `All rejected: ${counted(rejectedInARow, 'request')}${lastAcceptedAt === null ? '' : ' since the last accepted one'}`;
    return { text: all, tone: rejectedInARow >= MANY ? 'bad' : 'warn' };
  }
  const [first, ...others] = rejectedCompanies;
  if (first) {
    const whose =
      others.length > 0 ? `${others.length + 1} companies` : `company ${visible(first.company)}`;
    const most = Math.max(...rejectedCompanies.map(({ count }) => count));
    return { text: `All requests of ${whose} rejected`, tone: most >= MANY ? 'bad' : 'warn' };
  }
  if (lastRequestAt === null) return { text: 'None yet', tone: '' };
  if (lastAcceptedAt === null) return { text: 'None accepted', tone: 'warn' };
  if (late && usualGapMs !== null) {
    return {
      text: `Late: accepted ${ago(lastAcceptedAt)}, usually within ${duration(usualGapMs)}`,
      tone: 'warn',
    };
  }
  return { text: `Accepted ${ago(lastAcceptedAt)}`, tone: '' };
}

/** @param {string | null} at */
function timeOrNone(at) {
  return at === null ? 'none known' : html`<${Time} at=${at} />`;
}

/** @param {Arrivals} arrivals */
function totalsOf({ minutes }) {
  /** @param {'accepted' | 'rejected'} field */
  const sum = (field) => minutes.reduce((all, minute) => all + minute[field], 0);
  return `${number(sum('accepted'))} accepted, ${number(sum('rejected'))} rejected`;
}

/**
 * The accepted and rejected requests per minute, as bars.
 *
 * @param {{ minutes: Arrivals['minutes'] }} props
 */
function Bars({ minutes }) {
  const most = Math.max(...minutes.map(({ accepted, rejected }) => accepted + rejected));
  const height = (/** @type {number} */ count) => (40 * count) / most;
  const label = `Webhook requests per minute in the last hour, at most ${number(most)}`;
  return html`<div class="bars">
    <svg
      viewBox=${`0 0 ${minutes.length} 40`}
      preserveAspectRatio="none"
      role="img"
      aria-label=${label}
    >
      ${minutes.map(({ startsAt, accepted, rejected }, index) => {
        if (accepted + rejected === 0) return null;
        const [low, high] = [height(accepted), height(rejected)];
        return html`<g key=${startsAt}>
          <rect class="accepted" x=${index + 0.1} width="0.8" y=${40 - low} height=${low} />
          <rect class="rejected" x=${index + 0.1} width="0.8" y=${40 - low - high} height=${high} />
        </g>`;
      })}
    </svg>
    <p class="quiet">
      per minute, last hour, at most ${number(most)}: <i class="accepted"></i> accepted${' '}
      <i class="rejected"></i> rejected
    </p>
  </div>`;
}

/** @param {{ rejections: Arrivals['rejections'] }} props */
function Rejections({ rejections }) {
  return html`<${CardTable}
    label="Rejected webhook requests of the last hour"
    titles=${['Code', 'Rejected', 'Company', 'Last', 'Cause and fix']}
    rows=${rejections.map(({ count, code, company, lastAt, message }) => ({
      key: `${code} ${company}`,
      cells: [
        html`<code>${code}</code>`,
        number(count),
        company === null
          ? html`<span class="quiet">not known</span>`
          : html`<${Foreign} text=${company} />`,
        html`<${Time} at=${lastAt} />`,
        html`<${Foreign} text=${message ?? ''} />`,
      ],
    }))}
  />`;
}

/** @param {{ secrets: Arrivals['secrets'], now: string }} props */
function SecretsTable({ secrets, now }) {
  return html`<${CardTable}
    label="Webhook secrets"
    titles=${['Company', 'Current secret verified', 'Previous secret verified', 'Test']}
    rows=${secrets.map((one) => ({
      key: one.company,
      cells: [
        html`<${Foreign} text=${one.company} />`,
        html`${one.current === null ? 'nothing since ' : 'last '}<${Time}
            at=${one.current ?? one.since}
          />`,
        html`<${Previous} secrets=${one} now=${now} />`,
        html`<${TestWebhook} company=${one.company} />`,
      ],
    }))}
  />`;
}

/** When a previous secret was last used, and whether it can be removed. @param {{ secrets: Secrets, now: string }} props */
function Previous({ secrets: { previousCount, previous, current, since, differ }, now }) {
  if (previousCount === 0) return html`<span class="quiet">no previous secret</span>`;
  const lastUse = html`${previous === null ? 'nothing since ' : 'last '}<${Time}
      at=${previous ?? since}
    />`;
  const unused = Date.parse(now) - Date.parse(previous ?? since) >= UNUSED_MS;
  const advice = differ
    ? 'The processes have different secrets: a deployment is not complete.'
    : current === null
      ? 'Keep it: the current secret has not verified a request yet.'
      : unused
        ? 'You can remove the previous secret.'
        : 'Keep it until it has not been used for 24 hours.';
  return html`${lastUse}. <span class="advice">${advice}</span>`;
}

/** Sends a test webhook, and shows what became of it. @param {{ company: string }} props */
function TestWebhook({ company }) {
  const [running, setRunning] = useState(false);
  const [lines, setLines] = useState(/** @type {readonly import('./setup.js').Line[]} */ ([]));
  const send = async () => {
    setRunning(true);
    setLines(await linesOf({ check: 'webhook', company }));
    setRunning(false);
  };
  return html`<${ActionButton}
      disabled=${running}
      aria-label=${`Send test webhook of ${company}`}
      onClick=${() => void send()}
    >
      Send test webhook
    <//>
    <div role="status">
      ${running ? html`<p class="quiet">Waits for the request …</p>` : html`<${Lines} lines=${lines} />`}
    </div>
    ${!running && lines.some(({ state }) => state === 'failed') && html`<a href=${setupLink(company)}>Check the setup</a>`}`;
}

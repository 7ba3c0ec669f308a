import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { none, PaymentExpectations, PaymentInbox, PaymentsApiService } from 'nestjs-payments';
import { json, ScriptedService } from '../../support/api/scripted-service.js';
import { MEMORY, RECONCILE } from '../../support/inbox/expecting-application.js';
import { ListEngine } from '../../support/engines/list-engine.js';
import { post, startOn } from '../../support/inbox/inbox-application.js';
import { alerts, dashboardExpressions } from '../../support/telemetry/monitoring-files.js';
import { Metrics } from '../../support/telemetry/otel-sdk.js';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { settled } from '../../support/inbox/settled.js';

/** A metric, as `docs/monitor.md` or the scraped text shows it. */
interface Row {
  readonly type: string;
  readonly unit: string;
  readonly attributes: readonly string[];
}

function monitorPage(): string {
  return readFileSync(join(import.meta.dirname, '../../../docs/monitor.md'), 'utf8');
}

function troubleshootPage(): string {
  return readFileSync(join(import.meta.dirname, '../../../docs/troubleshoot.md'), 'utf8');
}

/** The rows of the table of metrics in `docs/monitor.md`, by name. */
function documented(): Map<string, Row> {
  const rows = monitorPage().matchAll(
    /^\| `(payments\.[a-z_.]+)` +\| (\w+) +\| `([^`]+)` +\| ([^|]*)\|/gm,
  );
  return new Map(
    [...rows].map(([, name, type, unit, attributes]) => [
      name!,
      {
        type: type!,
        unit: unit!,
        attributes: [...attributes!.matchAll(/`([a-z_.]+)`/g)].map(([, one]) => one!).toSorted(),
      },
    ]),
  );
}

/** Returns the name that Prometheus prints for a metric of OpenTelemetry. */
function prometheusName(name: string, type: string): string {
  return `${name.replaceAll('.', '_')}${type === 'counter' ? '_total' : ''}`;
}

/** Returns the scraped metrics by name. Each metric has the attributes of all its time series. */
function scraped(page: string): Map<string, Row> {
  const found = new Map<string, Row>();
  for (const [, name, type] of page.matchAll(/^# TYPE (payments_\w+) (\w+)$/gm)) {
    const unit = new RegExp(`^# UNIT ${name} (.+)$`, 'm').exec(page)?.[1] ?? '';
    const series = page.matchAll(new RegExp(`^${name}(?:_count)?\\{(.*)\\} \\S+$`, 'gm'));
    const labels = [...series].flatMap(([, text]) =>
      [...text!.matchAll(/(\w+)="/g)].map(([, label]) => label!),
    );
    const attributes = [...new Set(labels)].filter((label) => !label.startsWith('otel_'));
    found.set(name!, { type: type!, unit, attributes: attributes.toSorted() });
  }
  return found;
}

/** Runs an application that records every metric with every attribute. */
async function runThrough(metrics: Metrics, service: ScriptedService): Promise<void> {
  const { baseUrl } = service;
  const mail = () => {
    throw new Error('the mail server is down');
  };
  const options = {
    baseUrl,
    observers: [metrics.observer],
    reconcile: RECONCILE,
    api: { retry: { attempts: 1 } },
    worker: { retry: none },
  };
  service.onToken = json(401, {});
  {
    await using app = await startOn(MEMORY, {}, options);
    const call = app.app.get(PaymentsApiService).getTransaction('t-1');
    await expect(call).rejects.toMatchObject({ code: 'invalid_credentials' });
  }
  service.onToken = json(200, service.tokenAnswer());
  const status = async () => ({ lag: 0, deadLetters: 1 });
  const source = Object.assign(new ListEngine().source(), { status });
  source.deliver({ attributes: {}, body: Buffer.from('not an event'), deliveries: 2 });
  const app = await startOn(MEMORY, { book: () => {}, mail }, { ...options, source });
  const expectations = app.app.get(PaymentExpectations);
  for (const transactionId of ['t-1', 't-2']) await expectations.expect({ transactionId });
  await expectations.askNow({ reference: 't-1' });
  await settled(app.app);
  const request = webhookRequest({ id: 'e-1', data: { transactionId: 't-2' } });
  for (let n = 0; n < 2; n += 1) await app.send(request);
  await app.send(request, { headers: { 'X-Webhook-Signature': undefined } });
  await post(app, 'e-2', {});
  service.onCall = json(503, {});
  await expectations.expect({ transactionId: 't-3', dueBy: new Date('2026-01-01') });
  await settled(app.app);
  await app.app.get(PaymentInbox).redrive({ handler: 'mail' });
  await settled(app.app);
  await eventually(async () =>
    expect([...(await metrics.collect()).keys()]).toEqual(
      expect.arrayContaining([
        'payments.expectations.became_overdue',
        'payments.expectations.fulfilled',
      ]),
    ),
  );
  stop = () => app[Symbol.asyncDispose]();
}

let stop: () => Promise<void> = async () => {};

describe('the metrics that Prometheus scrapes', () => {
  const metrics = new Metrics();
  let service: ScriptedService;
  let page: string;

  beforeAll(async () => {
    service = await ScriptedService.start();
    await runThrough(metrics, service);
    page = await metrics.scrape();
  });
  afterAll(async () => {
    await stop();
    await service.stop();
  });

  it('TE-05 Prometheus gets every documented metric with its type, unit and attributes, and no other metric', () => {
    const rows = [...documented()].map(
      ([name, row]) =>
        [
          prometheusName(name, row.type),
          { ...row, attributes: row.attributes.map((one) => one.replaceAll('.', '_')) },
        ] as const,
    );
    expect(rows.length).toBeGreaterThan(15);
    expect(Object.fromEntries(scraped(page))).toEqual(Object.fromEntries(rows));
  });

  it('TE-05 docs/monitor.md names every value of the attributes source, status, outcome, state and result that Prometheus gets', () => {
    const table = monitorPage();
    const values = [
      ...page.matchAll(
        /payments_(?:source|status|outcome|state|result|reason|status_class)="(\w+)"/g,
      ),
    ];
    expect(new Set(values.map(([, value]) => value)).size).toBeGreaterThan(8);
    for (const [, value] of values) expect(table).toContain(`\`${value}\``);
  });

  it('TE-05 each panel of the dashboard and each alert uses only metrics and labels that Prometheus gets', () => {
    const rows = scraped(page);
    const found = [...dashboardExpressions(), ...alerts()];
    expect(found.length).toBeGreaterThan(25);
    for (const { of, metrics: names, labels, values } of found) {
      expect([of, names.length]).not.toEqual([of, 0]);
      const used = names.map((name) => {
        const row = rows.get(name.replace(/_(?:bucket|count)$/, ''));
        // Only a histogram has these suffixes, and it has no series without a suffix.
        return (row?.type === 'histogram') === /_(?:bucket|count)$/.test(name) ? row : undefined;
      });
      expect([of, names.filter((_name, index) => used[index] === undefined)]).toEqual([of, []]);
      const known = used.flatMap((row) => row!.attributes);
      expect([of, labels.filter((label) => !known.includes(label))]).toEqual([of, []]);
      const documents = monitorPage() + troubleshootPage();
      expect([of, values.filter((value) => !documents.includes(`\`${value}\``))]).toEqual([of, []]);
    }
    // Each metric is in the dashboard.
    const shown = dashboardExpressions().flatMap(({ metrics: names }) => names);
    expect([...rows.keys()].filter((name) => !shown.some((one) => one.startsWith(name)))).toEqual(
      [],
    );
  });

  it('TE-05 each alert has a summary and a description with an action, and is explained in docs/monitor.md', () => {
    expect(alerts().length).toBeGreaterThan(8);
    for (const { of, summary, description, runbook } of alerts()) {
      expect([of, summary]).toEqual([of, expect.stringMatching(/\.$/)]);
      // The description explains the alert, and names at least one action.
      expect(description.split('. ').length).toBeGreaterThan(1);
      expect(runbook).toMatch(/\/docs\/monitor\.md#alerts$/);
      expect(monitorPage()).toContain(`| \`${of}\``);
    }
  });

  const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;
  (hasPromtool ? it : it.skip)('TE-05 promtool accepts the alert rules', () => {
    const file = join(import.meta.dirname, '../../../docs/monitoring/alerts.yml');
    const { status, stderr } = spawnSync('promtool', ['check', 'rules', file]);
    expect([status, String(stderr)]).toEqual([0, '']);
  });

  (hasPromtool ? it : it.skip)('TE-05 each alert fires only if its cause occurs', () => {
    const files = ['alerts.test.yml', 'alerts-week.test.yml'].map((name) =>
      join(import.meta.dirname, '../../support/telemetry', name),
    );
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', ...files]);
    expect([status, String(stdout), String(stderr)]).toEqual([0, expect.anything(), '']);
  });

  it('TE-05 no label of a metric contains an id, a reference, a path or an error message', () => {
    for (const secret of ['t-1', 't-2', 'e-1', 'transactions/', 'mail server', 'whsec_']) {
      expect(page).not.toContain(secret);
    }
  });

  it('TE-05 the duration buckets end at 60 s, but the buckets of the time until an event is handled end at three days', () => {
    const last = (name: string) =>
      [...page.matchAll(new RegExp(`^${name}_bucket\\{.*le="([\\d.]+)"`, 'gm'))]
        .map(([, le]) => Number(le))
        .reduce((a, b) => Math.max(a, b), 0);
    expect(last('payments_process_duration')).toBe(60);
    expect(last('payments_api_call_duration')).toBe(60);
    expect(last('payments_delivery_duration')).toBe(259_200);
  });
});

import { afterEach, expect, it } from '@jest/globals';
import type { InboxProcess } from 'nestjs-payments';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';
import { inboxOf, post, startOn } from '../../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../../support/inbox/durable-inboxes.js';
import { MerchantProcess } from '../../support/inbox/merchant-process.js';
import { eventually } from '../../support/time/waiting.js';
import { SECRET } from '../../support/webhook/webhook-application.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';

let running: MerchantProcess[] = [];
afterEach(async () => {
  await Promise.all(running.map((one) => one[Symbol.asyncDispose]()));
  running = [];
});

/** The requests of processes by code; the code of accepted requests is `accepted`. */
function countsOf(processes: readonly InboxProcess[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code, perMinute } of processes.flatMap(({ requests }) => requests)) {
    const sum = perMinute.reduce((total, count) => total + count, 0);
    counts[code ?? 'accepted'] = (counts[code ?? 'accepted'] ?? 0) + sum;
  }
  return counts;
}

onEachDurableInbox((durable) => {
  it('OP-20 every process shows the requests and handlers of the other processes, and whether they have exited', async () => {
    const data = await durable.data();
    const start = async () => {
      const merchant = await MerchantProcess.start(data, { hooks: true });
      running.push(merchant);
      return merchant;
    };
    const [first, second] = [await start(), await start()];
    await using app = await startOn(data, {});
    const processes = () => inboxOf(app).processes();
    const others = async () => (await processes()).filter(({ here }) => !here);
    await eventually(async () =>
      expect(await others()).toMatchObject(
        [1, 2].map(() => ({ state: 'running', handlers: [{ name: 'book', slots: 20 }] })),
      ),
    );
    for (const id of ['a', 'b', 'c']) expect(await first.send(id, 'nothing')).toBe(200);
    for (const id of ['d', 'e']) expect(await second.send(id, 'nothing')).toBe(200);
    const forged = signedWebhook({ webhookSecret: 'whsec_another_secret' }, { id: 'f' });
    expect((await fetch(second.url! + forged.path, forged)).status).toBe(401);
    expect(await post(app, 'g')).toBe(200);
    for (const merchant of [first, second]) {
      merchant.signal('SIGTERM');
      await merchant.ended;
    }
    const ended = await others();
    expect(ended.map(({ state }) => state)).toEqual(['ended', 'ended']);
    expect(countsOf(ended)).toEqual({ accepted: 5, signature_mismatch: 1 });
    expect(countsOf(await processes())).toEqual({ accepted: 6, signature_mismatch: 1 });
    const rejection = ended.flatMap(({ requests }) => requests).find(({ code }) => code !== null);
    expect(rejection).toMatchObject({
      company: 'default',
      message: expect.stringContaining('Check that the webhook secret of this company is the one'),
    });
    expect(JSON.stringify(await processes())).not.toContain(SECRET);
  });

  it('OP-21 a new process shows when earlier processes last used each webhook secret', async () => {
    const data = await durable.data();
    const rotated = 'whsec_rotated_0123456789';
    {
      await using old = await startOn(data, {});
      expect(await post(old, 'a')).toBe(200);
    }
    await using app = await startOn(data, {}, { webhookSecret: [rotated, SECRET] });
    const secrets = async () => {
      const [{ companies }] = (await inboxOf(app).processes()) as [InboxProcess];
      return companies[0]!.secrets.map(({ verifiedAtMs }) => verifiedAtMs !== null);
    };
    await eventually(async () => expect(await secrets()).toEqual([false, true]));
    const request = signedWebhook({ webhookSecret: rotated }, { id: 'b' });
    expect((await app.send(request)).status).toBe(200);
    expect(await secrets()).toEqual([true, true]);
  });

  it('OP-20 a killed process is shown as lost, and its requests of the last hour are still counted', async () => {
    const data = await durable.data();
    const merchant = await MerchantProcess.start(data);
    running.push(merchant);
    let aheadMs = 0;
    const runtime = {
      ...systemRuntime,
      now: () => Date.now() + aheadMs,
      monotonic: () => performance.now() + aheadMs,
    };
    await using app = await startOn(data, {}, { runtime });
    const other = async () => (await inboxOf(app).processes()).find(({ here }) => !here);
    expect(await merchant.send('a', 'nothing')).toBe(200);
    await eventually(async () => expect(countsOf([(await other())!])).toEqual({ accepted: 1 }));
    merchant.signal('SIGKILL');
    await merchant.ended;
    expect(await other()).toMatchObject({ state: 'running' });
    aheadMs = 46_000;
    await data.pass(aheadMs);
    expect(await other()).toMatchObject({ state: 'lost' });
  });
});

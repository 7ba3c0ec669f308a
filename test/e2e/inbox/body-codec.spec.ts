import { expect, it } from '@jest/globals';
import { fixed } from 'nestjs-payments';
import type { BodyCodec, WorkerOptions } from 'nestjs-payments';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { AT_ONCE, inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import { onMemoryAndSqlite } from '../../support/inbox/expecting-application.js';

/** A codec that inverts every byte, and adds a prefix that differs each time. */
class Inverting implements BodyCodec {
  #number = 0;
  /** The ids of the events whose body `encode` or `decode` rejects. */
  readonly faults = { encode: new Set<string>(), decode: new Set<string>() };

  async encode(body: Buffer, { id }: { id: string }): Promise<Uint8Array> {
    if (this.faults.encode.has(id)) throw new Error('the key service is down');
    this.#number += 1;
    return Uint8Array.of(this.#number, ...body.map((byte) => ~byte));
  }

  decode(stored: Buffer, { id }: { id: string }): Uint8Array {
    if (this.faults.decode.has(id)) throw new Error('the key is missing');
    return stored.subarray(1).map((byte) => ~byte);
  }
}

onMemoryAndSqlite((data) => {
  async function start(worker: WorkerOptions = AT_ONCE) {
    const ran: string[] = [];
    const bodyCodec = new Inverting();
    const { faults } = bodyCodec;
    const app = await startOn(
      await data(),
      { book: ({ id }) => void ran.push(id) },
      { bodyCodec, worker },
    );
    return { app, ran, faults, [Symbol.asyncDispose]: () => app.app.close() };
  }

  it('SE-11 although each encoding differs, a copy of an event is a duplicate, and the same id with another body is a conflict', async () => {
    await using running = await start();
    const { app, ran } = running;
    const first = webhookRequest({ id: 'evt_1', data: { amount: 1 } });
    const responses = await Promise.all(Array.from({ length: 10 }, () => app.send(first)));
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200));
    await eventually(async () => expect(await states(app, 'evt_1')).toEqual({ book: 'done 1' }));
    expect((await app.send(first)).body).toMatchObject({ status: 'duplicate' });
    expect(app.log.matching(/was received again with another body/)).toEqual([]);
    const other = await app.send(webhookRequest({ id: 'evt_1', data: { amount: 2 } }));
    expect(other).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    expect(app.log.matching(/evt_1 .*was received again with another body/)).toHaveLength(1);
    expect((await inboxOf(app).get('evt_1'))!.raw!.equals(first.body)).toBe(true);
    expect(ran).toEqual(['evt_1']);
  });

  it('SE-11 an event whose body cannot be encoded gets the response 503 and is not stored, and a later copy of the event is handled', async () => {
    await using running = await start();
    const { app, ran, faults } = running;
    faults.encode.add('evt_1');
    const sent = webhookRequest({ id: 'evt_1' });
    for (let count = 0; count < 5; count += 1) {
      expect(await app.send(sent)).toMatchObject({
        status: 503,
        body: { code: 'inbox_unavailable', message: expect.not.stringContaining('key service') },
      });
    }
    expect(await post(app, 'evt_2')).toBe(200);
    expect(app.log.matching(/could not encode .*evt_1 .*key service is down/)).toHaveLength(1);
    expect(await inboxOf(app).get('evt_1')).toBeUndefined();
    faults.encode.clear();
    expect((await app.send(sent)).status).toBe(200);
    await eventually(() => expect(ran.toSorted()).toEqual(['evt_1', 'evt_2']));
  });

  it('SE-11 a body that cannot be decoded fails only its own delivery, which is retried', async () => {
    await using running = await start({ retry: fixed([1, 1]) });
    const { app, ran, faults } = running;
    faults.decode.add('evt_2');
    await Promise.all(['evt_1', 'evt_2', 'evt_3'].map((id) => post(app, id)));
    await eventually(async () => {
      expect(await states(app, 'evt_1')).toEqual({ book: 'done 1' });
      expect(await states(app, 'evt_2')).toEqual({ book: 'dead 3' });
      expect(await states(app, 'evt_3')).toEqual({ book: 'done 1' });
    });
    expect(ran.toSorted()).toEqual(['evt_1', 'evt_3']);
    const { raw, bodyError, deliveries } = (await inboxOf(app).get('evt_2'))!;
    const why = /\(body_undecodable\).*event evt_2 \(company default\).*the key is missing/;
    expect(raw).toBeNull();
    expect(bodyError).toMatch(why);
    expect(deliveries[0]!.lastError).toMatch(why);
    expect(app.log.matching(/evt_2 .*attempt 3 of 3.*is dead/)).toEqual([
      expect.stringMatching(why),
    ]);
    // list() returns no bodies, and therefore decodes none.
    expect((await inboxOf(app).list()).events).toHaveLength(3);
  });
});

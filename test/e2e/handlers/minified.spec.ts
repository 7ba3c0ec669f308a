import { expect, it } from '@jest/globals';
import * as nest from '@nestjs/common';
import { build } from 'esbuild';
import * as payments from 'nestjs-payments';
import { onOneAdapter } from '../../support/webhook/handler-application.js';

const SOURCE = `
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';

@Injectable()
class Orders {
  @OnPaymentEvent('transaction.completed')
  markPaid() {}
}

@Injectable()
class Receipts {
  @OnPaymentEvent('transaction.completed')
  sendReceipt() {}

  @OnPaymentEvent(['transaction.reversed', 'payout.*'])
  @OnPaymentEvent('refund.settled')
  revoke() {}

  @OnPaymentEvent('*', { name: 'audit' })
  note() {}
}

export const providers = [Orders, Receipts];
`;

const PACKAGES: Readonly<Record<string, unknown>> = {
  '@nestjs/common': nest,
  'nestjs-payments': payments,
};

/** The providers that the source exports, from a CommonJS bundle that esbuild made without the packages. */
async function bundled(minify: boolean): Promise<(new () => object)[]> {
  const { outputFiles } = await build({
    stdin: { contents: SOURCE, loader: 'ts' },
    bundle: true,
    minify,
    write: false,
    format: 'cjs',
    external: Object.keys(PACKAGES),
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
  });
  const module = { exports: {} as { providers: (new () => object)[] } };
  // oxlint-disable-next-line no-new-func, no-implied-eval -- the bundle is a string
  const run = new Function('module', 'require', outputFiles[0]!.text) as (
    target: typeof module,
    require: (name: string) => unknown,
  ) => void;
  run(module, (name) => PACKAGES[name]);
  return module.exports.providers;
}

onOneAdapter('handlers of a minified application', (start) => {
  it('IN-37 the application keeps the default names of handlers when esbuild minifies the application', async () => {
    const names: string[][] = [];
    const classes: string[] = [];
    for (const minify of [false, true]) {
      const providers = await bundled(minify);
      await using app = await start({ providers });
      const handlers = await app.app.get(payments.PaymentInbox).handlers();
      names.push(handlers.map(({ name }) => name));
      classes.push(providers.map(({ name }) => name).join());
    }
    expect(classes[0]).toBe('Orders,Receipts');
    expect(classes[1]).not.toMatch(/Orders|Receipts/);
    expect(names[0]).toEqual([
      'audit',
      'payout.*|refund.settled|transaction.reversed#revoke',
      'transaction.completed#markPaid',
      'transaction.completed#sendReceipt',
    ]);
    expect(names[1]).toEqual(names[0]);
  });
});

import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { PaymentsError, PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import type { PaymentsModuleOptions, PaymentsOptionsFactory } from 'nestjs-payments';
import { bootFailure } from '../../support/webhook/boot-failure.js';

const PRIVATE = 'a-private-value';
const FAILED = 'the options factory of PaymentsModule.forRootAsync() failed.';

@Injectable()
class Failing implements PaymentsOptionsFactory {
  createPaymentsOptions(): PaymentsModuleOptions {
    throw new TypeError('the vault is sealed');
  }
}

describe('the options factory of forRootAsync', () => {
  it.each([
    [
      'throws',
      () => {
        throw new TypeError('the vault is sealed');
      },
    ],
    ['rejects', async () => Promise.reject(new TypeError('the vault is sealed'))],
  ])(
    'the boot error names an options factory that %s, and has the original error as its cause',
    async (_, useFactory) => {
      const { error, shown } = await bootFailure(PaymentsModule.forRootAsync({ useFactory }));
      expect(error).toBeInstanceOf(PaymentsError);
      expect(error.code).toBe('options_invalid');
      expect(error.message).toContain(FAILED);
      expect(error.cause).toEqual(new TypeError('the vault is sealed'));
      expect(shown).toContain('the vault is sealed');
    },
  );

  it('the boot error names the class of an options factory that throws', async () => {
    const { error } = await bootFailure(PaymentsModule.forRootAsync({ useClass: Failing }));
    expect(error.message).toContain(FAILED);
    expect(error.cause).toEqual(new TypeError('the vault is sealed'));
  });

  it.each([undefined, null])(
    'the boot error names an options factory that returns %p',
    async (nothing) => {
      const module = PaymentsModule.forRootAsync({ useFactory: () => nothing as never });
      const { error } = await bootFailure(module);
      expect(error.code).toBe('options_invalid');
      expect(error.message).toMatch(/options factory.*returned nothing\. Return the options/);
    },
  );

  it('the boot error does not show what an options factory returned instead of an object', async () => {
    const module = PaymentsModule.forRootAsync({ useFactory: () => PRIVATE as never });
    const { error, shown } = await bootFailure(module);
    expect(error.message).toContain('the options must be an object');
    expect(shown).not.toContain(PRIVATE);
  });

  it('the message and the JSON of the boot error do not contain the error message of a failed options factory', async () => {
    const module = PaymentsModule.forRootAsync({
      useFactory: () => {
        throw new Error(`cannot parse ${PRIVATE}`);
      },
    });
    const { error } = await bootFailure(module);
    expect(error.message + JSON.stringify(error)).not.toContain(PRIVATE);
  });

  it('the boot error is the unchanged options_invalid error if an options factory throws such an error', async () => {
    const useFactory = () => readPaymentsEnvironment({});
    const { error } = await bootFailure(PaymentsModule.forRootAsync({ useFactory }));
    expect(error.message).toMatch(/^PaymentsModule: environment variables are missing or wrong/);
    expect(error.cause).toBeUndefined();
  });
});

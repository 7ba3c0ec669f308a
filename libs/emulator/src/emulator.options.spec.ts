import { describe, expect, it } from '@jest/globals';
import { EmulatorInputError } from './emulator.errors.js';
import type { PaymentsEmulatorOptions } from './emulator.options.js';
import { resolveOptions } from './emulator.options.js';

describe('resolveOptions', () => {
  it('has a default for everything, with the numbers of the service', () => {
    expect(resolveOptions()).toMatchObject({
      host: '127.0.0.1',
      port: 0,
      tokenLifetime: 3599,
      deliveryTimeout: 30_000,
      redeliver: [],
      pendingStatus: 'pending',
      serviceName: 'PaymentsEmulator',
      company: { companyId: 'default' },
    });
  });

  it('answers frozen options', () => {
    expect(Object.isFrozen(resolveOptions())).toBe(true);
  });

  it('takes slashes off the end of a public URL', () => {
    expect(resolveOptions({ publicUrl: 'http://emulator:4010/' }).publicUrl).toBe(
      'http://emulator:4010',
    );
  });

  const wrong: [PaymentsEmulatorOptions, string][] = [
    [{ port: 65_536 }, 'port must be a whole number from 0 to 65535'],
    [{ port: Number.NaN }, 'port must be'],
    [{ tokenLifetime: 0 }, 'tokenLifetime must be a whole number of seconds from 1 to 86400'],
    [{ deliveryTimeout: 1.5 }, 'deliveryTimeout must be a whole number of milliseconds'],
    [{ logSize: 0 }, 'logSize must be'],
    [{ concurrency: 0 }, 'concurrency must be'],
    [{ serviceName: 'a b' }, 'serviceName must be 1 to 64 letters'],
    [{ pendingStatus: 'complete' }, 'pendingStatus must be'],
    [{ publicUrl: 'emulator:4010' }, 'publicUrl must be an http:// or https:// URL'],
    [
      { publicUrl: 'http://tools.example/emulator' },
      'publicUrl must be an http:// or https:// URL',
    ],
    [{ publicUrl: 'http://ann:pw@emulator' }, 'publicUrl must be an http:// or https:// URL'],
    [{ productionPublicUrl: 'http://emulator/?a' }, 'productionPublicUrl must be an http://'],
    [{ redeliver: [-1] }, 'delivery.redeliver must be a list'],
    [{ webhookUrl: 'http://shop.example' }, 'webhookUrl must be an https:// URL'],
    [{ clientId: 'a:b' }, 'clientId must be 1 to 256 characters without a colon'],
    [{ companyId: 'a/b' }, 'companyId must be 1 to 64 letters'],
    [{ faults: { api: { error: { status: 1 } } } }, 'api.error.status must be'],
  ];

  it.each(wrong)('refuses %j and names option, unit and bounds', (options, message) => {
    expect(() => resolveOptions(options)).toThrow(EmulatorInputError);
    expect(() => resolveOptions(options)).toThrow(TypeError);
    expect(() => resolveOptions(options)).toThrow(message);
  });

  it('names every option at fault at once', () => {
    expect(() => resolveOptions({ port: -1, logSize: -1 })).toThrow(/port .*; logSize /);
  });
});

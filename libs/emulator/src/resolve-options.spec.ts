import { describe, expect, it } from '@jest/globals';
import { EmulatorInputError } from './emulator-errors.js';
import type { PaymentsEmulatorOptions } from './emulator-options.js';
import { resolveOptions } from './resolve-options.js';

describe('resolveOptions', () => {
  it('resolveOptions() uses the values of the service as defaults', () => {
    expect(resolveOptions()).toMatchObject({
      host: '127.0.0.1',
      port: 0,
      tokenLifetime: 3599,
      deliveryTimeout: 30_000,
      redeliver: [],
      pendingStatus: 'pending',
      serviceName: 'PaymentsEmulator',
      companies: [{ companyId: 'default' }],
    });
  });

  it('resolveOptions() returns frozen options', () => {
    expect(Object.isFrozen(resolveOptions())).toBe(true);
  });

  it('resolveOptions() removes slashes at the end of a public URL', () => {
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
    [{ currency: 'kes' }, 'currency must be three capital letters, such as KES'],
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
    [{ webhookUrl: 'ftp://shop.example' }, 'webhookUrl must be an https:// URL'],
    [{ controlToken: 'fifteen-letters' }, 'controlToken must be 16 to 256 characters'],
    [{ controlToken: 'with a space in it' }, 'controlToken must be 16 to 256 characters'],
    [{ clientId: 'a:b' }, 'clientId must be 1 to 256 characters without a colon'],
    [{ companies: [] }, 'companies must be 1 to 100 ids'],
    [{ companies: ['acme', '1x'] }, 'companies must be 1 to 100 ids'],
    [{ companies: ['my-shop', 'My_shop'] }, 'companies must be 1 to 100 ids'],
    [{ companies: ['acme'], clientId: 'shop' }, 'clientId is a setting of one company'],
    [{ companyId: 'a/b' }, 'companyId must be 1 to 64 letters'],
    [{ faults: { api: { error: { status: 1 } } } }, 'api.error.status must be'],
  ];

  it.each(wrong)(
    'resolveOptions() rejects %j with a message that names the option, the unit and the bounds',
    (options, message) => {
      expect(() => resolveOptions(options)).toThrow(EmulatorInputError);
      expect(() => resolveOptions(options)).toThrow(TypeError);
      expect(() => resolveOptions(options)).toThrow(message);
    },
  );

  it.each<[PaymentsEmulatorOptions, boolean]>([
    [{}, false],
    [{ host: 'localhost' }, false],
    [{ host: '127.0.0.2' }, false],
    [{ host: '::1' }, false],
    [{ publicUrl: 'http://localhost:4010' }, false],
    [{ host: '0.0.0.0' }, true],
    [{ host: '::' }, true],
    [{ host: '192.168.1.7' }, true],
    [{ host: 'devbox' }, true],
    [{ publicUrl: 'https://emulator.example' }, true],
    [{ productionPublicUrl: 'https://emulator.example' }, true],
  ])(
    'SE-14 resolveOptions() generates a control token only if other machines can reach the emulator: %j, %s',
    (options, remoteAccess) => {
      const first = resolveOptions({ seed: 'known', ...options });
      expect(first.remoteAccess).toBe(remoteAccess);
      expect(first.webhookPolicy.publicOnly).toBe(remoteAccess);
      if (!remoteAccess) return expect(first.controlToken).toBeUndefined();
      expect(first.controlToken).toMatch(/^ctl_[0-9a-f]{32}$/);
      expect(resolveOptions({ seed: 'known', ...options }).controlToken).not.toBe(
        first.controlToken,
      );
    },
  );

  it('SE-14 resolveOptions() rejects NODE_ENV=production unless allowProduction is set', () => {
    expect(() => resolveOptions({}, 'production')).toThrow(/^allowProduction is needed/);
    expect(resolveOptions({ allowProduction: true }, 'production').port).toBe(0);
    expect(resolveOptions({}, 'development').port).toBe(0);
  });

  it('resolveOptions() names all invalid options in one error', () => {
    expect(() => resolveOptions({ port: -1, logSize: -1 })).toThrow(/port .*; logSize /);
  });
});

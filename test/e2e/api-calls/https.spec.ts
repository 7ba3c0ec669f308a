import { readFileSync } from 'node:fs';
import { Agent, createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { EnvHttpProxyAgent } from 'undici';
import {
  apiApplication,
  testCompany,
  type ApiApplication,
} from '../../support/api/api-client-application.js';
import { ADAPTERS } from '../../support/api/api-harness.js';
import { ConnectProxy } from '../../support/http/connect-proxy.js';

const file = (name: string): Buffer =>
  readFileSync(new URL(`../../support/http/tls/${name}`, import.meta.url));
const ca = file('localhost-cert.pem');

describe('the API client with HTTPS', () => {
  let requests = 0;
  let service: Server;
  let proxy: ConnectProxy;
  let host: string;
  let application: ApiApplication | undefined;
  let environment: string | undefined;

  beforeAll(async () => {
    service = createServer({ key: file('localhost-key.pem'), cert: ca }, (request, response) => {
      requests += 1;
      const token = { access_token: 'token', expires_in: '3599', token_type: 'Bearer' };
      const body = request.url === '/v1/auth/token' ? token : { seen: request.headers };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    host = `localhost:${(service.address() as AddressInfo).port}`;
  });

  afterAll(() => {
    service.closeAllConnections();
    service.close();
  });

  beforeEach(async () => {
    proxy = await ConnectProxy.start();
    environment = process.env['HTTPS_PROXY'];
    process.env['HTTPS_PROXY'] = proxy.url;
  });

  afterEach(async () => {
    await application?.close();
    if (environment === undefined) delete process.env['HTTPS_PROXY'];
    else process.env['HTTPS_PROXY'] = environment;
    await proxy.stop();
  });

  async function call(options: Parameters<typeof apiApplication>[1]): Promise<void> {
    application = await apiApplication(testCompany(`https://${host}`), options);
    const transaction = await application.payments.getTransaction('1');
    expect(transaction).toMatchObject({ seen: { authorization: 'Bearer token' } });
    expect(new Set(proxy.targets)).toEqual(new Set([host]));
  }

  /** Does work while all clients trust the certificate of the service. */
  async function trusting(work: () => Promise<unknown>): Promise<void> {
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, ca.toString()]);
    try {
      await work();
    } finally {
      setDefaultCACertificates(trusted);
    }
  }

  it.each(ADAPTERS)(
    'the adapter %s sends no request to a service with an untrusted certificate, and calls a service with a trusted certificate',
    async (adapter) => {
      application = await apiApplication(testCompany(`https://${host}`), { adapter });
      const { payments, runtime } = application;
      requests = 0;
      await expect(payments.getTransaction('1')).rejects.toThrow(/SELF_SIGNED_CERT/);
      expect(requests).toBe(0);
      runtime.advance(60_000);
      await trusting(() => payments.getTransaction('1'));
      expect(requests).toBe(2);
    },
  );

  it('HT-31 the adapter http uses HTTPS_PROXY through an agent of https-proxy-agent', async () => {
    // This agent has no option for certificate authorities.
    const agent = new HttpsProxyAgent(process.env['HTTPS_PROXY'] ?? '');
    await trusting(() => call({ adapter: 'http', agents: { https: agent } }));
    agent.destroy();
  });

  it('HT-31 the adapter http uses HTTPS_PROXY through an agent of Node.js with proxyEnv', async () => {
    const agent = new Agent({ ca, proxyEnv: process.env });
    let destroyed = 0;
    agent.destroy = () => void (destroyed += 1);
    await call({ agents: { https: agent } });
    await application?.close();
    // Only the application closes the agent.
    expect(destroyed).toBe(0);
    Agent.prototype.destroy.call(agent);
  });

  it('HT-31 the adapter undici uses HTTPS_PROXY through an EnvHttpProxyAgent', async () => {
    const dispatcher = new EnvHttpProxyAgent({ requestTls: { ca } });
    await call({ dispatcher });
    await application?.close();
    // Only the application closes the dispatcher.
    expect(dispatcher).toMatchObject({ closed: false, destroyed: false });
    await dispatcher.close();
  });
});

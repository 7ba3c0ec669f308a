import { describe, expect, it } from '@jest/globals';
import { webhookPath } from './deliver.js';

const at = (paths: string[], endpoint: string[] = []) => ({
  endpointPaths: () => endpoint,
  paths: () => [...endpoint, ...paths],
});

describe('webhookPath()', () => {
  it('AP-12 webhookPath() chooses the webhook endpoint, with the company in the path if a company is given', () => {
    const routes = at(['/own'], ['/api/in', '/api/in/:company']);
    expect(webhookPath(routes, undefined)).toBe('/api/in');
    expect(webhookPath(routes, 'acme')).toBe('/api/in/acme');
  });

  it('AP-12 webhookPath() chooses the only route under WebhookGuard if there is no endpoint', () => {
    expect(webhookPath(at(['/own', '/own']), 'acme')).toBe('/own');
    expect(webhookPath(at(['/v1/:company/in']), undefined)).toBe('/v1/default/in');
  });

  it.each([
    ['several routes', ['/a', '/b'], '"path"'],
    ['another parameter', ['/a/:tenant'], '"path"'],
    ['a wildcard', ['/a/*rest'], '"path"'],
    ['no route', [], 'WebhookGuard'],
  ])('AP-12 webhookPath() throws for %s, and names the fix', (_, paths, fix) => {
    expect(() => webhookPath(at(paths), undefined)).toThrow(fix);
  });
});

import { describe, expect, it } from '@jest/globals';
import { webhookPath } from './webhook-path.js';

const at = (paths: string[], endpoint: string[] = []) => ({
  endpointPaths: () => endpoint,
  paths: () => [...endpoint, ...paths],
});

describe('webhookPath()', () => {
  it('AP-12 prefers the endpoint, with the company if one is named', () => {
    const routes = at(['/own'], ['/api/in', '/api/in/:company']);
    expect(webhookPath(routes, undefined)).toBe('/api/in');
    expect(webhookPath(routes, 'acme')).toBe('/api/in/acme');
  });

  it('AP-12 takes the only route of the application', () => {
    expect(webhookPath(at(['/own', '/own']), 'acme')).toBe('/own');
    expect(webhookPath(at(['/v1/:company/in']), undefined)).toBe('/v1/default/in');
  });

  it.each([
    ['several routes', ['/a', '/b'], '"path"'],
    ['another parameter', ['/a/:tenant'], '"path"'],
    ['a wildcard', ['/a/*rest'], '"path"'],
    ['no route', [], 'WebhookGuard'],
  ])('AP-12 rejects %s, and names the fix', (_, paths, fix) => {
    expect(() => webhookPath(at(paths), undefined)).toThrow(fix);
  });
});

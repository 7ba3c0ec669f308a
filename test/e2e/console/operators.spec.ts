import { expect, it } from '@jest/globals';
import type { CanActivate } from '@nestjs/common';
import { consoleOnEachAdapter } from '../../support/console/console-application.js';

consoleOnEachAdapter((start) => {
  it.each<[string, unknown, string | null]>([
    ['a username', { sub: 7, username: 'ann' }, 'ann'],
    ['an e-mail address', { id: 1, email: 'ann@shop.example' }, 'ann@shop.example'],
    ['a subject', { sub: 'auth0|1', name: 'Ann' }, 'auth0|1'],
    ['a number', { id: 42 }, '42'],
    ['a name', { username: ' ', name: 'Ann' }, 'Ann'],
    ['a text', 'ann', 'ann'],
    ['an undefined user', undefined, null],
    ['unknown claims', { roles: ['ops'] }, null],
    ['an object for a name', { username: { first: 'Ann' } }, null],
    [
      'line ends',
      { username: 'ann\n[Nest] LOG "root"\u2028\u202e\u0007x' },
      'ann [Nest] LOG "root" x',
    ],
    ['a long name', { username: '🔑'.repeat(500) }, '🔑'.repeat(100)],
  ])('the console reads the name of the operator from %s', async (_, user, who) => {
    const guard: CanActivate = {
      canActivate: (context) => {
        context.switchToHttp().getRequest<{ user?: unknown }>().user = user;
        return true;
      },
    };
    await using app = await start({ console: { guards: [guard] } });
    expect((await app.get('/api/overview')).body['who']).toBe(who);
    await app.post('pause', { handler: '*' });
    const line = `log ${JSON.stringify(who ?? 'unknown')}: pause all handlers PaymentsConsole`;
    expect(app.log).toContain(line);
  });

  it('the console calls "who" for the name, and does nothing if it throws', async () => {
    let failing = false;
    const who = ({ headers }: { headers: object }) => {
      if (failing) throw new Error('no session of 10.0.0.7');
      return `sso:${String((headers as Record<string, string>)['x-sso-user'])}\u001b[31m`;
    };
    await using app = await start({ console: { who } });
    const sso = { 'x-sso-user': 'ann' };
    expect((await app.get('/api/overview', sso)).body).toMatchObject({ who: 'sso:ann [31m' });
    failing = true;
    const response = await app.post('pause', { handler: '*' });
    expect(response.status).toBe(500);
    expect(response.text).not.toContain('10.0.0.7');
    failing = false;
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: [] } });
  });

  it('the console awaits the promise of "who", and does nothing if it rejects', async () => {
    let session: Promise<string | undefined> = Promise.resolve('ann');
    await using app = await start({ console: { who: () => session } });
    expect((await app.get('/api/overview')).body).toMatchObject({ who: 'ann' });
    await app.post('pause', { handler: '*' });
    expect(app.log).toContain('log "ann": pause all handlers PaymentsConsole');
    session = Promise.resolve(undefined);
    await app.post('pause', { handler: '*' });
    expect(app.log).toContain('log "unknown": pause all handlers PaymentsConsole');
    session = Promise.reject(new Error('no session of 10.0.0.7'));
    const response = await app.post('resume', { handler: '*' });
    expect(response.status).toBe(500);
    expect(response.text).not.toContain('10.0.0.7');
    session = Promise.resolve('ann');
    expect((await app.get('/api/overview')).body).toMatchObject({ stats: { paused: ['*'] } });
  });
});

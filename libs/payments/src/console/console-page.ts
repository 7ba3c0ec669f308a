import { Get, Inject, Req, Res } from '@nestjs/common';
import { ConsoleAnswers } from './console-answers.js';
import { ConsoleAssets } from './console-assets.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { headerOf, pathOf } from './console-request.js';
import type { ConsoleRequest } from './console-request.js';
import { ConsoleRefusal } from './console-refusal.js';
import { alsoWithSlash } from './trailing-slash.js';

/** The page and its files. Mounted by `consoleControllers()`, below a class of each registration's own. */
export class ConsolePage {
  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    @Inject(ConsoleAssets) private readonly assets: ConsoleAssets,
    @Inject(ConsoleAnswers) private readonly answers: ConsoleAnswers,
  ) {}

  @Get()
  @alsoWithSlash()
  page(@Req() request: ConsoleRequest, @Res() response: unknown): void {
    // A browser resolves relative addresses from the last slash of the page's own.
    const name = this.options.path.split('/').at(-1)!;
    const { html, policy } = this.assets.page(pathOf(request).endsWith('/') ? './' : `./${name}/`);
    const headers = { 'content-type': 'text/html; charset=utf-8' };
    this.answers.text(response, 200, { ...headers, 'content-security-policy': policy }, html);
  }

  @Get('assets/:name')
  asset(@Req() request: ConsoleRequest, @Res() response: unknown): void {
    const asset = this.assets.find(request.params?.['name'] ?? '');
    if (asset === undefined) throw new ConsoleRefusal(404, 'The console has no such file.');
    const { type, etag, text } = asset;
    // Kept by the browser alone, and asked for again, so that an upgrade is whole.
    const headers = { etag, 'cache-control': 'private, no-cache' };
    const known = (headerOf(request, 'if-none-match') ?? '').split(',');
    if (known.some((tag) => tag.trim().replace(/^W\//, '') === etag)) {
      this.answers.text(response, 304, headers);
      return;
    }
    this.answers.text(response, 200, { ...headers, 'content-type': type }, text);
  }
}

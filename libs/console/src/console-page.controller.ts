import { Get, Inject, Injectable, Req, Res } from '@nestjs/common';
import { ConsoleAssets } from './console-assets.js';
import { ConsoleException } from './console-exception.filter.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { headerOf, pathOf } from './console-request.js';
import type { ConsoleRequest } from './console-request.js';
import { AllowTrailingSlash } from './nest-internals.js';
import { ResponseWriter } from './response-writer.js';

@Injectable()
export class ConsolePage {
  constructor(
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
    private readonly assets: ConsoleAssets,
    private readonly responses: ResponseWriter,
  ) {}

  @Get()
  @AllowTrailingSlash()
  page(@Req() request: ConsoleRequest, @Res() response: unknown): void {
    // A browser resolves relative addresses from the last slash of the page's address.
    const name = this.options.path.split('/').at(-1)!;
    const { html, policy } = this.assets.page(pathOf(request).endsWith('/') ? './' : `./${name}/`);
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
    };
    this.responses.text(response, 200, headers, html);
  }

  @Get('assets/:name')
  asset(@Req() request: ConsoleRequest, @Res() response: unknown): void {
    const asset = this.assets.find(request.params?.['name'] ?? '');
    if (asset === undefined) throw new ConsoleException(404, 'The console has no such file.');
    const { type, etag, text } = asset;
    // The browser revalidates each file, so that all files are of the same version after an upgrade.
    const headers = { etag, 'cache-control': 'private, no-cache' };
    const known = (headerOf(request, 'if-none-match') ?? '').split(',');
    if (known.some((tag) => tag.trim().replace(/^W\//, '') === etag)) {
      this.responses.text(response, 304, headers);
      return;
    }
    this.responses.text(response, 200, { ...headers, 'content-type': type }, text);
  }
}

import {
  Controller,
  Get,
  Headers,
  HttpStatus,
  NotFoundException,
  Param,
  Res,
  StreamableFile,
} from '@nestjs/common';
import type { Answer } from './page.js';
import { readAssets } from './page.assets.js';

/** `GET /assets/:name`: what the pages are made of. */
@Controller('assets')
export class AssetsController {
  readonly #assets = readAssets();

  @Get(':name')
  show(
    @Param('name') name: string,
    @Headers('if-none-match') known: string | undefined,
    @Res({ passthrough: true }) answer: Answer,
  ): StreamableFile | undefined {
    const asset = this.#assets.get(name);
    if (asset === undefined) throw new NotFoundException(`there is no ${name} here`);
    answer.header('etag', asset.etag);
    // Asked for again with each page, and sent again only once it is another one.
    answer.header('cache-control', 'no-cache');
    answer.header('x-content-type-options', 'nosniff');
    answer.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'");
    if (known === asset.etag) {
      answer.status(HttpStatus.NOT_MODIFIED);
      return undefined;
    }
    return new StreamableFile(asset.body, { type: asset.type, length: asset.body.length });
  }
}

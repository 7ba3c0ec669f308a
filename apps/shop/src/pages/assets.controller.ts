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
import { readAssets } from './page-assets.js';
import type { HttpResponse } from './page.js';

/** The scripts, style sheets and pictures of the pages, `GET /assets/:name`. */
@Controller('assets')
export class AssetsController {
  readonly #assets = readAssets();

  @Get(':name')
  get(
    @Param('name') name: string,
    @Headers('if-none-match') cachedEtag: string | undefined,
    @Res({ passthrough: true }) response: HttpResponse,
  ): StreamableFile | undefined {
    const asset = this.#assets.get(name);
    if (asset === undefined) throw new NotFoundException(`asset ${name} does not exist`);
    response.header('etag', asset.etag);
    // Browsers revalidate an asset with each page, and receive it again only if it has changed.
    response.header('cache-control', 'no-cache');
    response.header('x-content-type-options', 'nosniff');
    response.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'");
    if (cachedEtag === asset.etag) {
      response.status(HttpStatus.NOT_MODIFIED);
      return undefined;
    }
    return new StreamableFile(asset.body, { type: asset.type, length: asset.body.length });
  }
}

import {
  Controller,
  Get,
  Inject,
  NotFoundException,
  Param,
  Redirect,
  Res,
  UseGuards,
} from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { WithoutControlToken } from '../controls/control-token.guard.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import type { PageFile } from './page-files.js';
import { PAGE_HEADERS, scriptedPage, sendPage } from './page-layout.js';

export const PAGE_FILES = Symbol('PAGE_FILES');

/**
 * Endpoints that only the emulator has: the page of STK push prompts, the redirect from `/`, and the files that the
 * pages load.
 */
@Controller()
@UseGuards(SameOriginGuard)
export class PagesController {
  constructor(@Inject(PAGE_FILES) private readonly files: ReadonlyMap<string, PageFile>) {}

  @Get()
  @Redirect('/emulator')
  root(): void {}

  @Get('emulator/stk')
  stk(@Res({ passthrough: true }) reply: FastifyReply): string {
    return sendPage(reply, scriptedPage('STK push prompts', 'stk-page.js'));
  }

  /**
   * Returns a file of the pages. No control token is required, because the checkout pages of customers load these
   * files, and no file contains data.
   */
  @Get('emulator/pages/:file')
  @WithoutControlToken()
  file(@Param('file') name: string, @Res({ passthrough: true }) reply: FastifyReply): Buffer {
    const file = this.files.get(name);
    if (!file) throw new NotFoundException('there is no page file with this name');
    void reply.headers({ ...PAGE_HEADERS, 'content-type': file.type });
    return file.body;
  }
}

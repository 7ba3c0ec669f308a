import { Controller, Get, Inject, NotFoundException, Param, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { WithoutControlToken } from '../controls/control-token.guard.js';
import { SameOriginGuard } from '../controls/same-origin.guard.js';
import { sendPage } from './page.reply.js';
import type { PageFile } from './page.files.js';
import { PAGE_HEADERS, scriptedPage } from './page.shell.js';

/** The files of the pages, by name. */
export const PAGE_FILES = Symbol('PAGE_FILES');

/** The emulator's own: the page of STK push prompts, and the files that all pages load. */
@Controller('emulator')
@UseGuards(SameOriginGuard)
export class PagesController {
  constructor(@Inject(PAGE_FILES) private readonly files: ReadonlyMap<string, PageFile>) {}

  @Get('stk')
  stk(@Res({ passthrough: true }) reply: FastifyReply): string {
    return sendPage(reply, scriptedPage('STK push prompts', 'stk.js'));
  }

  /** The checkout of customers loads its style here; no file holds data. */
  @Get('pages/:file')
  @WithoutControlToken()
  file(@Param('file') name: string, @Res({ passthrough: true }) reply: FastifyReply): Buffer {
    const file = this.files.get(name);
    if (!file) throw new NotFoundException('no such file');
    void reply.headers({ ...PAGE_HEADERS, 'content-type': file.type });
    return file.body;
  }
}

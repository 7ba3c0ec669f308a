// TypeScript under `nodenext` writes '../../signature.js' for '../../signature.ts'. Jest reads the source, so a
// relative '.js' that does not exist is looked for as '.ts'. CommonJS, because Jest requires its resolver.
module.exports = (request, options) => {
  try {
    return options.defaultResolver(request, options);
  } catch (error) {
    if (/^\.{1,2}\/.*\.js$/.test(request)) {
      return options.defaultResolver(request.replace(/\.js$/, '.ts'), options);
    }
    throw error;
  }
};

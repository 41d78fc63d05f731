//! From SVG to outlines, with the one font that the program brings along: no system font is read, so none can be
//! missing. PNG is rendered from these outlines here, PDF in [`super::pdf`].

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::failed;
use crate::error::Result;

const FAMILY: &str = "DejaVu Sans";

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

/// The shapes of a drawing; text is shapes as well.
pub fn tree(svg: &str) -> Result<Tree> {
    let options = Options { fontdb: FONTS.clone(), font_family: FAMILY.to_owned(), ..Options::default() };
    Tree::from_str(svg, &options).map_err(failed)
}

/// The bytes of a PNG file with `scale` pixels per unit of the drawing.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>> {
    let tree = tree(svg)?;
    let size = tree.size().to_int_size().scale_by(scale).ok_or_else(|| failed("the picture has no size"))?;
    let mut pixels =
        Pixmap::new(size.width(), size.height()).ok_or_else(|| failed("the picture has no size"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(failed)
}

"""A random forest of scikit-learn on handwritten digits: no epochs, no checkpoints, ten folds drawn once for all trials."""

import togl
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split

with togl.fold(trees=100) as fold:
    images, digits = load_digits(return_X_y=True)
    folds = StratifiedKFold(10, shuffle=True, random_state=42).split(images, digits)
    rest, test = list(folds)[fold.split]
    train, validation = train_test_split(rest, test_size=0.2, stratify=digits[rest], random_state=fold.split)
    forest = RandomForestClassifier(
        n_estimators=fold.settings["trees"],
        max_features=fold.settings["max_features"],
        random_state=fold.seed,
        n_jobs=1,
    )
    forest.fit(images[train], digits[train])
    fold.result(
        test=forest.score(images[test], digits[test]),
        validation=forest.score(images[validation], digits[validation]),
        train=forest.score(images[train], digits[train]),
    )
